#include "loom/text/parser.h"

#include <fmt/format.h>

#include <algorithm>

#include "loom/base/suggest.h"
#include "loom/text/parser_impl.h"

namespace loom {
namespace {

std::string spelling(const Token& token) {
  if (token.kind == TokenKind::End) return "the end of the file";
  constexpr size_t kLongest = 40;
  const std::string_view text = token.text();
  if (text.size() <= kLongest) return fmt::format("'{}'", text);
  size_t cut = kLongest;
  while ((text[cut] & 0xc0) == 0x80) --cut;  // not inside a character
  return fmt::format("'{}...'", text.substr(0, cut));
}

bool is_symbol_text(std::string_view text) {
  const auto fits = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '$' || c == '.';
  };
  return !text.empty() && text.front() != '.' && text.back() != '.' &&
         text.find("..") == std::string_view::npos && std::ranges::all_of(text, fits);
}

}  // namespace

Parser::Parser(SourceFiles& files, FileId file, Diagnostics& diagnostics)
    : files_(files),
      file_(file),
      diagnostics_(diagnostics),
      module_(files),
      lexer_(files.file(file).text, file, diagnostics) {}

bool Parser::error(Diag id, const Token& token, std::vector<DiagParam> params) {
  if (token.kind != TokenKind::Error) diagnostics_.emit(id, location(token), std::move(params));
  return false;
}

bool Parser::expected_error(std::string_view expected) {
  // A bare word right after the place of modifiers is more likely a misspelled one.
  if (token_.kind == TokenKind::Word && current_.pc > 1) {
    const FormatKind before = current_.format->steps[current_.pc - 2u].kind;
    if (before == FormatKind::Word || before == FormatKind::Clause ||
        before == FormatKind::OperandClause) {
      return error(Diag::ParseUnknownFlag, token_,
                   {{"word", std::string(token_.text())},
                    {"cases", current_.format->modifiers},
                    {"repair", suggest(token_.text(), current_.format->modifiers)}});
    }
  }
  return error(Diag::ParseExpected, token_,
               {{"expected", std::string(expected)}, {"found", spelling(token_)}});
}

ValueId Parser::poison() {
  if (!poison_.valid()) poison_ = module_.create_value(TypeId(), StringId());
  return poison_;
}

bool Parser::use_value(ValueId& out) {
  if (token_.kind != TokenKind::Value) return expected_error("a value");
  const StringId name = module_.strings.intern(token_.name());
  out = names_in_scope_.find(name);
  if (!out.valid()) {
    error(Diag::ParseUndefinedValue, token_,
          {{"name", std::string(token_.text())}, {"repair", suggest_value(token_.name())}});
    names_in_scope_.bind(name, poison());  // reported once per scope
    return false;
  }
  advance();
  return out != poison_;
}

std::string Parser::suggest_op(std::string_view name) const {
  Suggestion suggestion(name);
  for (const OpKind kind : kAllOpKinds) suggestion.consider(op_info(kind).name);
  return suggestion.hint();
}

std::string Parser::suggest_value(std::string_view name) const {
  Suggestion suggestion(name);
  for (size_t i = 0; i < module_.strings.size(); ++i) {
    const ValueId value = names_in_scope_.find(StringId(i));
    if (value.valid() && value != poison_) suggestion.consider(module_.strings.text(StringId(i)));
  }
  return suggestion.best().empty()
             ? "define it before its use; values of an enclosing isolated body are not visible here"
             : fmt::format("did you mean '%{}'?", suggestion.best());
}

void Parser::define(StringId name, ValueId value, const Token& token) {
  const ValueId known = names_in_scope_.find(name);
  if (known.valid() && known != poison_) {
    error(Diag::ParseRedefinedValue, token, {{"name", std::string(token.text())}});
  } else {
    names_in_scope_.bind(name, value);
  }
}

std::optional<Module> Parser::run() {
  const size_t errors = diagnostics_.error_count();
  region_ = module_.body();
  constexpr size_t kBytesPerOp = 40;  // of dense code; names and types only make it more
  module_.reserve(files_.file(file_).text.size() / kBytesPerOp);
  advance();
  parse_regions();
  if (diagnostics_.error_count() != errors) return std::nullopt;
  return std::move(module_);
}

void Parser::parse_regions() {
  while (!diagnostics_.stopped()) {
    Progress progress;
    const char* start = token_.begin;
    if (at(TokenKind::RightBrace) && !frames_.empty()) {
      close_region();
      progress = walk_format();
    } else if (at(TokenKind::End)) {
      if (!check_end()) return;
      close_trivia(region_);
      return;
    } else if (at(TokenKind::Hash) && frames_.empty()) {
      current_ = {};
      progress = parse_alias() ? Progress::Entered : Progress::Failed;
    } else {
      progress = parse_header() ? walk_format() : Progress::Failed;
    }
    if (progress == Progress::Failed || (progress == Progress::Done && !finish_op())) {
      fail_op();
      recover(start);
    }
  }
}

// Every region is closed. Only the innermost one is reported.
bool Parser::check_end() {
  if (frames_.empty()) return true;
  current_ = {};
  error(Diag::ParseExpected, token_, {{"expected", "'}'"}, {"found", spelling(token_)}});
  return false;
}

// `%a, %b = dialect.op`
bool Parser::parse_header() {
  current_ = {};
  older_family_ = {};
  current_.names_begin = static_cast<uint32_t>(names_.size());
  current_.cases_begin = static_cast<uint32_t>(cases_.size());
  operands_.clear();
  group_sizes_.clear();
  result_types_.clear();
  results_stated_ = has_missing_ = false;
  arg_names_.clear();
  if (!lexer_.trivia.empty() || !leading_.empty()) take_leading(region_);
  if (at(TokenKind::Value)) {
    do {
      if (!at(TokenKind::Value)) return expected_error("a result name");
      names_.push_back({module_.strings.intern(token_.name()), token_});
      ++current_.names_count;
      advance();
    } while (take(TokenKind::Comma));
    if (!need(TokenKind::Equal, "'='")) return false;
  }
  if (!at(TokenKind::OpName)) return expected_error("an operation");
  const OpFormat* format = find_op_format(token_.text());
  if (format == nullptr) {
    format = find_older_op_format(token_.text());
    current_.older = format != nullptr;
  } else if (format->info->kind == OpKind::FuncReturn && in_older_template()) {
    format = &op_format(OpKind::TemplateReturn);
  }
  if (format == nullptr) {
    const std::string name(token_.text());
    const std::string dialect = name.substr(0, name.find('.'));
    if (is_later_op(name)) return error(Diag::ParseLaterOp, token_, {{"name", name}});
    if (is_later_dialect(dialect)) {
      return error(Diag::ParseUnsupportedDialect, token_, {{"name", name}, {"dialect", dialect}});
    }
    return error(Diag::ParseUnknownOp, token_, {{"name", name}, {"repair", suggest_op(name)}});
  }
  current_.format = format;
  current_.name = token_;
  attrs_.assign(format->info->attrs.size(), AttrId());
  advance();
  return parse_older_decl();
}

// Implementations that were written as functions ended like functions.
bool Parser::in_older_template() const { return frames_.size() == 1 && frames_[0].current.older; }

// `"k"`, where the symbol of a family stands now.
bool Parser::parse_older_family(AttrId& out) {
  const Token place = token_;
  StringId text;
  if (!parse_string(text)) return false;
  if (!is_symbol_text(module_.strings.text(text))) {
    return error(Diag::ParseExpected, place,
                 {{"expected", "a key that can be the name of a symbol"},
                  {"found", std::string(place.text())}});
  }
  out = module_.attrs.intern(Attr::symbol(text));
  return true;
}

// `func.provider.decl<"k"> ...`: the key is the name of the family.
bool Parser::parse_older_decl() {
  if (!current_.older || current_.format->info->kind != OpKind::TemplateDecl) return true;
  if (!need(TokenKind::Less, "'<'")) return false;
  if (!at(TokenKind::String)) return expected_error("a string");
  AttrId family;
  if (!parse_older_family(family)) return false;
  older_family_ = family;
  return need(TokenKind::Greater, "'>'");
}

// Creates the operation from the parts read so far and puts it into its region.
bool Parser::create_op() {
  const OpInfo& info = *current_.format->info;
  if (!deduce_results()) return false;
  if (current_.names_count != result_types_.size()) {
    const Token& at_token =
        current_.names_count == 0 ? current_.name : names_[current_.names_begin].token;
    return error(Diag::ParseResultCount, at_token,
                 {{"op", std::string(info.name)},
                  {"expected", std::to_string(result_types_.size())},
                  {"found", std::to_string(current_.names_count)}});
  }
  if (result_types_.size() > kMaxValues || operands_.size() > kMaxValues) {
    return operand_count_error(kMaxValues, std::max(result_types_.size(), operands_.size()),
                               current_.name);
  }
  while (group_sizes_.size() < info.operands.size()) group_sizes_.push_back(0);
  current_.op = module_.create(
      {.kind = info.kind,
       .operands = operands_,
       .groups =
           info.has_groups ? std::span<const uint32_t>(group_sizes_) : std::span<const uint32_t>(),
       .results = result_types_,
       .attrs = attrs_,
       .regions = info.repeats_regions() ? 0 : static_cast<unsigned>(info.regions.size()),
       .location = location(current_.name)});
  module_.append(region_, current_.op);
  if (info.symbol_slot >= 0) {
    const AttrId symbol = attrs_[static_cast<size_t>(info.symbol_slot)];
    if (symbol.valid()) module_.define_symbol(module_.attrs[symbol].string(), current_.op);
  }
  // The blank line above a definition is printed anyway.
  const bool implied = leading_.size() == 1 && !leading_[0].valid() && region_ == module_.body() &&
                       current_.format->definition;
  if (!leading_.empty() && !implied) {
    module_.op_trivia[current_.op.index()].leading = std::move(leading_);
  }
  leading_.clear();
  return true;
}

// Types of results that the text did not state.
bool Parser::deduce_results() {
  const OpInfo& info = *current_.format->info;
  if (results_stated_) return true;
  for (const ResultSpec& spec : info.results) {
    if (spec.same_as >= 0) {
      for (ValueId value : group(spec.same_as)) result_types_.push_back(module_.type_of(value));
    } else if (spec.arity == Arity::Single) {
      const auto only = spec.constraint->only_type(module_.types);
      LOOM_CHECK(only.has_value(), "the op's row does not give the type of a result");
      result_types_.push_back(*only);
    }
  }
  return true;
}

void Parser::bind_results() {
  for (uint32_t i = 0; i < current_.names_count; ++i) {
    const Name& name = names_[current_.names_begin + i];
    const ValueId value = module_.result(current_.op, i);
    module_.value(value).name = name.id;
    define(name.id, value, name.token);
  }
  names_.resize(current_.names_begin);
}

bool Parser::finish_op() {
  if (has_missing_ && !parse_older_dict()) return false;
  if (at_word("loc") && lexer_.peek() == '(' && !skip_location()) return false;
  if (!current_.op.valid() && !create_op()) return false;
  if (current_.scope_open) {
    settle_signature();
    close_scope();
  }
  bind_results();
  if (!lexer_.trivia.empty()) attach_trivia();
  const Op& op = module_.op(current_.op);
  if (op.operand_count == 0 && current_.format->info->has(trait::Terminator)) {
    drop_implicit_terminator(current_.op);
  }
  return true;
}

// Later uses of the operation's results are not worth a report of their own.
void Parser::fail_op() {
  if (current_.scope_open) close_scope();
  for (uint32_t i = 0; i < current_.names_count; ++i) {
    const StringId name = names_[current_.names_begin + i].id;
    if (!names_in_scope_.find(name).valid()) names_in_scope_.bind(name, poison());
  }
  names_.resize(current_.names_begin);
  cases_.resize(current_.cases_begin);
  leading_.clear();
}

// Skips to the next operation of the region, or to its end. `start` is where the failed one began.
void Parser::recover(const char* start) {
  current_ = {};
  if (token_.begin == start && !at(TokenKind::End)) advance();
  size_t depth = open_braces_;  // of dictionaries
  open_braces_ = 0;
  for (; !at(TokenKind::End) && !diagnostics_.stopped(); advance()) {
    if (at(TokenKind::LeftBrace)) {
      ++depth;
    } else if (at(TokenKind::RightBrace)) {
      if (depth == 0 && !frames_.empty()) break;
      if (depth != 0) --depth;
    } else if (depth == 0 && token_.first_on_line &&
               (at(TokenKind::OpName) || (at(TokenKind::Value) && Lexer::starts_results(token_)))) {
      break;
    }
  }
  lexer_.trivia.clear();
}

// `#name = #family<...>`: the name stands for the encoding from here on.
bool Parser::parse_alias() {
  const Token name = token_;
  advance();
  AttrId encoding;
  if (!at(TokenKind::Equal)) return error(Diag::ParseMalformedAlias, name);
  advance();
  if (!at(TokenKind::Hash)) return error(Diag::ParseMalformedAlias, name);
  if (!parse_encoding(encoding, 0)) return false;
  const StringId id = module_.strings.intern(name.name());
  if (!encoding_family(name.name()).empty() || !aliases_.emplace(id.index(), encoding).second) {
    return error(Diag::ParseMalformedAlias, name);
  }
  return true;
}

// `loc(...)` after an operation is read and forgotten.
bool Parser::skip_location() {
  if (!at_word("loc")) return true;
  const Token start = token_;
  advance();
  size_t depth = 0;
  bool content = false;
  do {
    if (at(TokenKind::LeftParen)) {
      ++depth;
    } else if (at(TokenKind::RightParen)) {
      --depth;
    } else if (at(TokenKind::Integer) || at(TokenKind::String) || at(TokenKind::Word)) {
      content = true;
    } else if (!at(TokenKind::Colon) && !at(TokenKind::Comma)) {
      return error(Diag::ParseMalformedLocation, start);
    }
    advance();
  } while (depth != 0);
  return content || error(Diag::ParseMalformedLocation, start);
}

// At the `}` of the innermost region: goes back to the operation that holds it.
void Parser::close_region() {
  close_trivia(region_);
  const Frame& frame = frames_.back();
  current_ = frame.current;
  region_ = frame.outer;
  frames_.pop_back();
  operands_.clear();
  group_sizes_.clear();
  has_missing_ = false;
  attrs_.assign(current_.format->info->attrs.size(), AttrId());
  close_scope();
  advance();
}

// A value-less terminator that the region implies is not kept; its comments are.
void Parser::drop_implicit_terminator(OpId op) {
  const OpId parent = module_.region(region_).parent;
  if (!parent.valid()) return;
  const OpInfo& info = op_info(module_.op(parent).kind);
  const unsigned number = region_.index() - module_.op(parent).region_begin;
  // Every region of an operation that repeats them ends in the same way.
  const RegionSpec& spec = info.regions[info.repeats_regions() ? 0 : number];
  if (!spec.implicit || spec.terminator != module_.op(op).kind) return;
  // Only the end of a region may leave it out; anything after it stays an error.
  if (!at(TokenKind::RightBrace)) return;
  if (const auto trivia = module_.op_trivia.find(op.index()); trivia != module_.op_trivia.end()) {
    auto& rest = module_.region_trivia[region_.index()].before_close;
    rest.insert(rest.end(), trivia->second.leading.begin(), trivia->second.leading.end());
    if (trivia->second.same_line.valid()) rest.push_back(trivia->second.same_line);
  }
  module_.erase(op);
}

std::optional<Module> parse_text(SourceFiles& files, FileId file, Diagnostics& diagnostics) {
  const std::string& text = files.file(file).text;
  if (text.size() > 0xfffffff0u) {
    diagnostics.emit(Diag::IoRead, {},
                     {{"path", files.file(file).path}, {"reason", "it is larger than 4 GiB"}});
    return std::nullopt;
  }
  if (const size_t bad = find_invalid_utf8(text); bad != std::string_view::npos) {
    const std::string_view before = std::string_view(text).substr(0, bad);
    const size_t line_begin = before.rfind('\n') + 1;  // npos + 1 is 0
    const auto line = static_cast<uint32_t>(std::ranges::count(before, '\n')) + 1;
    diagnostics.emit(Diag::ParseInvalidUtf8,
                     {file, line, static_cast<uint32_t>(bad - line_begin) + 1, 1});
    return std::nullopt;
  }
  return Parser(files, file, diagnostics).run();
}

}  // namespace loom
