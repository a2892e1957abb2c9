#include <charconv>
#include <cmath>
#include <limits>
#include <utility>

#include "loom/base/suggest.h"
#include "loom/text/parser_impl.h"

namespace loom {
namespace {

std::string suggest_predicate(std::string_view name) {
  Suggestion suggestion(name);
#define LOOM_PREDICATE(kind, text, arguments, domain) suggestion.consider(text);
#include "loom/ir/predicates.def"
  return suggestion.hint();
}

}  // namespace

bool Parser::parse_attr(int slot) {
  const AttrSpec& spec = current_.format->info->attrs[static_cast<size_t>(slot)];
  AttrId value;
  if (!parse_form(spec, value, false)) return false;
  attrs_[static_cast<size_t>(slot)] = value;
  if (current_.op.valid()) module_.set_attr(current_.op, static_cast<unsigned>(slot), value);
  return true;
}

// `x(value)` or `x(value, value)`
bool Parser::parse_attr_clause(const FormatStep& step) {
  const auto& specs = current_.format->info->attrs;
  const AttrSpec& spec = specs[static_cast<size_t>(step.a)];
  if (!at_word(step.text)) {
    if (!spec.optional && !has_missing_) {
      has_missing_ = true;
      missing_ = token_;
    }
    return true;
  }
  advance();
  if (!need(TokenKind::LeftParen, "'('")) return false;
  AttrId value;
  if (!parse_form(spec, value, true)) return false;
  attrs_[static_cast<size_t>(step.a)] = value;
  if (current_.op.valid()) module_.set_attr(current_.op, static_cast<unsigned>(step.a), value);
  if (step.b >= 0 && take(TokenKind::Comma)) {
    if (!parse_form(specs[static_cast<size_t>(step.b)], value, true)) return false;
    attrs_[static_cast<size_t>(step.b)] = value;
  }
  return need(TokenKind::RightParen, "')'");
}

// `word(value to value)`
bool Parser::parse_range_clause(const FormatStep& step) {
  const auto& specs = current_.format->info->attrs;
  const auto from = static_cast<size_t>(step.a);
  const auto to = static_cast<size_t>(step.b);
  if (!at_word(step.text)) return expected_error(std::string(step.text) + "(");
  advance();
  if (!need(TokenKind::LeftParen, "'('") || !parse_form(specs[from], attrs_[from], true)) {
    return false;
  }
  if (!at_word("to")) return expected_error("'to'");
  advance();
  return parse_form(specs[to], attrs_[to], true) && need(TokenKind::RightParen, "')'");
}

// `<f|g>` after the operation's name
bool Parser::parse_flags(const FormatStep& step) {
  if (!at(TokenKind::Less)) return true;
  const Token open = token_;
  advance();
  const AttrSpec& spec = current_.format->info->attrs[static_cast<size_t>(step.a)];
  if (!parse_flag_list(spec, attrs_[static_cast<size_t>(step.a)])) return false;
  return take(TokenKind::Greater) || error(Diag::ParseUnterminatedAngle, open);
}

// `<x>` or `<x, f|g>`
bool Parser::parse_parameter(const FormatStep& step) {
  const auto& specs = current_.format->info->attrs;
  if (!at(TokenKind::Less)) {
    has_missing_ = true;
    missing_ = token_;
    return true;
  }
  const Token open = token_;
  advance();
  const auto slot = static_cast<size_t>(step.a);
  if (!parse_form(specs[slot], attrs_[slot], false)) return false;
  if (step.b >= 0 && take(TokenKind::Comma)) {
    const auto flags = static_cast<size_t>(step.b);
    if (!parse_flag_list(specs[flags], attrs_[flags])) return false;
  }
  return take(TokenKind::Greater) || error(Diag::ParseUnterminatedAngle, open);
}

bool Parser::parse_word(const FormatStep& step) {
  if (!at(TokenKind::Word)) return true;
  const auto slot = static_cast<size_t>(step.a);
  const AttrSpec& spec = current_.format->info->attrs[slot];
  if (spec.form == AttrForm::Unit) {
    if (token_.text() != spec.name) return true;
    attrs_[slot] = module_.attrs.intern(Attr::unit());
  } else {
    const auto found = enum_info(spec.enum_id).find(token_.text());
    if (!found) return true;
    attrs_[slot] = module_.attrs.intern(Attr::enumeration(*found));
  }
  advance();
  return true;
}

// `{k = v, ...}` with the row's keys
bool Parser::parse_op_dict() {
  if (!take_open_brace()) return true;
  const OpInfo& info = *current_.format->info;
  while (!at(TokenKind::RightBrace)) {
    const Token key = token_;
    if (!at(TokenKind::Word)) return expected_error("an attribute name");
    size_t slot = 0;
    while (slot < info.attrs.size() &&
           !(info.attrs[slot].in_dict && info.attrs[slot].name == key.text())) {
      ++slot;
    }
    if (slot == info.attrs.size()) {
      return error(Diag::TypeAttribute, key,
                   {{"attribute", std::string(key.text())},
                    {"op", std::string(info.name)},
                    {"detail", "the operation has no such attribute"}});
    }
    if (attrs_[slot].valid()) {
      return error(Diag::ParseDuplicateKey, key, {{"key", std::string(key.text())}});
    }
    advance();
    if (!need(TokenKind::Equal, "'='") || !parse_form(info.attrs[slot], attrs_[slot], false)) {
      return false;
    }
    if (!take(TokenKind::Comma)) break;
  }
  return need_close_brace();
}

// Parameters and clauses that were not at their place may stand in a dictionary, as older sources
// have it; some keys had another name there.
bool Parser::parse_older_dict() {
  static constexpr std::pair<std::string_view, std::string_view> kKeys[] = {
      {"base_alignment", "align"}, {"memory_space", "space"}};
  const OpInfo& info = *current_.format->info;
  const auto required = [](FormatKind kind) {
    return kind == FormatKind::Parameter || kind == FormatKind::Clause;
  };
  has_missing_ = false;
  if (take_open_brace()) {
    do {
      std::string_view key = token_.text();
      for (const auto& [older, current] : kKeys) {
        if (older == key) key = current;
      }
      for (const FormatStep& step : current_.format->steps) {
        if (!required(step.kind)) continue;
        const auto slot = static_cast<size_t>(step.a);
        if (info.attrs[slot].name != key || attrs_[slot].valid()) continue;
        advance();
        if (!need(TokenKind::Equal, "'='") || !parse_form(info.attrs[slot], attrs_[slot], false)) {
          return false;
        }
        break;
      }
    } while (take(TokenKind::Comma));
    if (!need_close_brace()) return false;
  }
  for (const FormatStep& step : current_.format->steps) {
    if (!required(step.kind)) continue;
    const AttrSpec& spec = info.attrs[static_cast<size_t>(step.a)];
    if (spec.optional || attrs_[static_cast<size_t>(step.a)].valid()) continue;
    token_ = missing_;
    return step.kind == FormatKind::Parameter ? expected_error("'<'")
                                              : expected_error("'" + std::string(step.text) + "('");
  }
  return true;
}

bool Parser::parse_form(const AttrSpec& spec, AttrId& out, bool in_clause) {
  int64_t integer = 0;
  double number = 0;
  StringId text;
  switch (spec.form) {
    case AttrForm::Integer:
      if (!parse_integer(integer)) return false;
      out = module_.attrs.intern(Attr::integer(integer));
      return true;
    case AttrForm::Float:
      if (!parse_float(number)) return false;
      out = module_.attrs.intern(Attr::floating(number));
      return true;
    case AttrForm::Literal:
      return parse_literal_value(out);
    case AttrForm::String:
      if (!parse_string(text)) return false;
      out = module_.attrs.intern(Attr::string(text));
      return true;
    case AttrForm::Symbol:
    case AttrForm::SymbolDef:
      return parse_symbol(spec, out);
    case AttrForm::Enum:
      return parse_enum(spec, out);
    case AttrForm::Flags:
      return parse_flag_list(spec, out);
    case AttrForm::IndexList:
    case AttrForm::IntList:
      return parse_int_list(out, in_clause);
    case AttrForm::Predicates:
      return (!current_.scope_open || settle_signature()) && parse_predicates(out);
    case AttrForm::Type: {
      TypeId type;
      if (!parse_type(type)) return false;
      out = module_.attrs.intern(Attr::type(type));
      return true;
    }
    case AttrForm::Dict:
    case AttrForm::Keys:
      return parse_dict(out, 0);
    case AttrForm::Encoding:
      if (!at(TokenKind::Hash)) return expected_error("an encoding");
      return parse_encoding(out, 0);
    case AttrForm::List:
    case AttrForm::Symbols:
      if (!at(TokenKind::LeftBracket)) return expected_error("'['");
      return parse_value_list(out, 0) &&
             (spec.form == AttrForm::List || symbols_only(out, last_list_));
    case AttrForm::Unit:
      out = module_.attrs.intern(Attr::unit());
      return true;
    case AttrForm::Name:
      if (!at(TokenKind::Word) && !at(TokenKind::OpName)) return expected_error("a name");
      out = module_.attrs.intern(Attr::word(module_.strings.intern(token_.text())));
      advance();
      return true;
  }
  return false;
}

bool Parser::symbols_only(AttrId& list, const Token& at_token) {
  const Attr& attr = module_.attrs[list];
  if (attr.kind == AttrKind::SymbolList) return true;
  if (attr.kind == AttrKind::List && attr.entries.empty()) {
    list = module_.attrs.intern({.kind = AttrKind::SymbolList});
    return true;
  }
  return error(Diag::ParseExpected, at_token,
               {{"expected", "a list of symbols"}, {"found", "a list of other values"}});
}

bool Parser::parse_symbol(const AttrSpec& spec, AttrId& out) {
  if (spec.form == AttrForm::SymbolDef && current_.older && older_family_.valid()) {
    out = std::exchange(older_family_, AttrId());
    if (at(TokenKind::Symbol)) advance();
    return true;
  }
  // Families had strings for names.
  if (at(TokenKind::String) && spec.form == AttrForm::Symbol && current_.older) {
    return parse_older_family(out);
  }
  if (!at(TokenKind::Symbol)) return expected_error("a symbol");
  const StringId name = module_.strings.intern(token_.name());
  if (spec.form == AttrForm::SymbolDef) {
    if (const OpId known = module_.symbol(name); known.valid()) {
      Diagnostic& report = diagnostics_.emit(Diag::SymbolDuplicate, location(token_),
                                             {{"symbol", std::string(token_.name())}});
      report.notes.push_back({module_.location(known), "the first definition is here"});
    }
  }
  out = module_.attrs.intern(Attr::symbol(name));
  advance();
  return true;
}

bool Parser::parse_enum(const AttrSpec& spec, AttrId& out) {
  if (!at(TokenKind::Word)) return expected_error(enum_info(spec.enum_id).text);
  const EnumInfo& info = enum_info(spec.enum_id);
  const auto found = info.find(token_.text());
  if (!found) {
    return error(Diag::ParseUnknownEnumCase, token_,
                 {{"word", std::string(token_.text())},
                  {"enum", std::string(info.text)},
                  {"cases", std::string(info.cases_text)},
                  {"repair", suggest(token_.text(), info.cases_text)}});
  }
  out = module_.attrs.intern(Attr::enumeration(*found));
  advance();
  return true;
}

bool Parser::parse_flag_list(const AttrSpec& spec, AttrId& out) {
  const FlagSetInfo& info = flag_set_info(spec.flags);
  uint64_t mask = 0;
  do {
    if (!at(TokenKind::Word)) return expected_error("a flag");
    const auto found = info.find(token_.text());
    if (!found) {
      return error(Diag::ParseUnknownFlag, token_,
                   {{"word", std::string(token_.text())},
                    {"cases", std::string(info.flags_text)},
                    {"repair", suggest(token_.text(), info.flags_text)}});
    }
    mask |= *found;
    advance();
  } while (take(TokenKind::Pipe));
  out = module_.attrs.intern(Attr::flags(mask));
  return true;
}

bool Parser::parse_integer(int64_t& out) {
  if (!at(TokenKind::Integer)) return expected_error("an integer");
  std::string_view digits = token_.text();
  const bool negative = digits.front() == '-';
  if (negative) digits.remove_prefix(1);
  int base = 10;
  if (digits.starts_with("0x") || digits.starts_with("0X")) {
    base = 16;
    digits.remove_prefix(2);
  }
  uint64_t magnitude = 0;
  const char* stop = digits.data() + digits.size();
  const auto [end, bad] = std::from_chars(digits.data(), stop, magnitude, base);
  constexpr uint64_t kLimit = uint64_t{1} << 63;
  if (bad != std::errc() || end != stop || magnitude > (negative ? kLimit : kLimit - 1)) {
    return error(Diag::ParseIntegerLiteral, token_, {{"text", std::string(token_.text())}});
  }
  out = static_cast<int64_t>(negative ? 0 - magnitude : magnitude);
  advance();
  return true;
}

// Also takes an integer, and the words `inf` and `nan`.
bool Parser::parse_float(double& out) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  if (at(TokenKind::Integer)) {
    int64_t integer = 0;
    if (!parse_integer(integer)) return false;
    out = static_cast<double>(integer);
    return true;
  }
  const std::string_view text = token_.text();
  if (at_word("inf") || at_word("nan")) {
    out = text == "inf" ? kInf : kNan;
  } else if (at(TokenKind::Float) && (text == "-inf" || text == "-nan")) {
    out = text == "-inf" ? -kInf : std::copysign(kNan, -1.0);
  } else if (at(TokenKind::Float)) {
    const char* stop = text.data() + text.size();
    const auto [end, bad] = std::from_chars(text.data(), stop, out);
    if (bad != std::errc() || end != stop || text.back() == '.') {
      return error(Diag::ParseFloatLiteral, token_, {{"text", std::string(text)}});
    }
  } else {
    return expected_error("a number");
  }
  advance();
  return true;
}

bool Parser::parse_literal_value(AttrId& out) {
  if (at(TokenKind::Hash)) return parse_encoding(out, 0);
  if (at_word("true") || at_word("false")) {
    out = module_.attrs.intern(Attr::boolean(token_.text() == "true"));
    advance();
    return true;
  }
  if (at(TokenKind::Integer)) {
    int64_t integer = 0;
    if (!parse_integer(integer)) return false;
    out = module_.attrs.intern(Attr::integer(integer));
    return true;
  }
  double number = 0;
  if (!parse_float(number)) return false;
  out = module_.attrs.intern(Attr::floating(number));
  return true;
}

bool Parser::parse_string(StringId& out) {
  if (!at(TokenKind::String)) return expected_error("a string");
  std::string detail;
  size_t offset = 0;
  scratch_.clear();
  if (!decode_string(token_.text(), scratch_, detail, offset)) {
    Token place = token_;
    place.begin += offset;
    place.column += static_cast<uint32_t>(offset);
    place.size = 1;
    return error(Diag::ParseInvalidEscape, place, {{"detail", detail}});
  }
  out = module_.strings.intern(scratch_);
  advance();
  return true;
}

// `1, 2` inside the parentheses of a clause, `[1, 2]` elsewhere
bool Parser::parse_int_list(AttrId& out, bool in_clause) {
  const TokenKind close = in_clause ? TokenKind::RightParen : TokenKind::RightBracket;
  if (!in_clause && !need(TokenKind::LeftBracket, "'['")) return false;
  ints_.clear();
  if (!at(close)) {
    do {
      int64_t number = 0;
      if (!parse_integer(number)) return false;
      ints_.push_back(number);
    } while (take(TokenKind::Comma));
  }
  out = module_.attrs.intern(Attr::int_list(ints_));
  return in_clause || need(close, "']'");
}

// `[p(args), ...]`
bool Parser::parse_predicates(AttrId& out) {
  if (!need(TokenKind::LeftBracket, "'['")) return false;
  std::vector<Predicate> list;
  if (!at(TokenKind::RightBracket)) {
    do {
      if (!parse_predicate(list.emplace_back())) return false;
    } while (take(TokenKind::Comma));
  }
  out = module_.attrs.intern(Attr::predicate_list(list));
  return need(TokenKind::RightBracket, "']'");
}

bool Parser::parse_predicate(Predicate& out) {
  const Token name = token_;
  if (!at(TokenKind::Word)) return expected_error("a predicate");
  const auto kind = predicate_from_name(name.text());
  if (!kind) {
    return error(Diag::ParseUnknownPredicate, name,
                 {{"name", std::string(name.text())}, {"repair", suggest_predicate(name.text())}});
  }
  out.kind = *kind;
  advance();
  if (!need(TokenKind::LeftParen, "'('")) return false;
  unsigned count = 0;
  if (!at(TokenKind::RightParen)) {
    do {
      PredicateArg arg;
      if (at(TokenKind::Value)) {
        if (!use_value(arg.value)) return false;
      } else if (!at(TokenKind::Integer)) {
        return expected_error("a value or an integer");
      } else if (!parse_integer(arg.literal)) {
        return false;
      }
      if (count < std::size(out.args)) out.args[count] = arg;
      ++count;
    } while (take(TokenKind::Comma));
  }
  if (count != out.arity()) {
    return error(Diag::ParsePredicateArity, name,
                 {{"name", std::string(name.text())},
                  {"expected", std::to_string(out.arity())},
                  {"found", std::to_string(count)}});
  }
  return need(TokenKind::RightParen, "')'");
}

}  // namespace loom
