#include <fmt/format.h>

#include <algorithm>

#include "loom/base/check.h"
#include "loom/ir/ir_text.h"
#include "loom/text/parser_impl.h"

namespace loom {

// Walks the steps from current_.pc on.
Parser::Progress Parser::walk_format() {
  const auto& steps = current_.format->steps;
  while (current_.pc < steps.size()) {
    const FormatStep& step_now = steps[current_.pc];
    if (step_now.kind == FormatKind::OptionalBegin && !starts(current_.pc + 1u)) {
      current_.pc = step_now.end;
      continue;
    }
    ++current_.pc;
    if (step_now.kind == FormatKind::Cases) {
      if (const Progress progress = next_case(step_now); progress != Progress::Done) {
        return progress;
      }
      continue;
    }
    if (step_now.kind == FormatKind::Region) {
      return enter_region(step_now.a) ? Progress::Entered : Progress::Failed;
    }
    if (!step(step_now)) return Progress::Failed;
  }
  return Progress::Done;
}

bool Parser::step(const FormatStep& step) {
  switch (step.kind) {
    case FormatKind::Literal:
      return parse_literal(step);
    case FormatKind::Operand:
      return parse_operands(step.a);
    case FormatKind::Types:
      return parse_types(step.a);
    case FormatKind::ResultTypes:
      return parse_result_types(step.a);
    case FormatKind::Attr:
      return parse_attr(step.a);
    case FormatKind::Flags:
      return parse_flags(step);
    case FormatKind::Parameter:
      return parse_parameter(step);
    case FormatKind::Clause:
      return parse_attr_clause(step);
    case FormatKind::RangeClause:
      return parse_range_clause(step);
    case FormatKind::OperandClause:
      return parse_operand_clause(step);
    case FormatKind::Word:
      return parse_word(step);
    case FormatKind::Dict:
      return parse_op_dict();
    case FormatKind::IndexList:
      return parse_index_list(step);
    case FormatKind::OperandDict:
      return parse_operand_dict(step);
    case FormatKind::BodyArgs:
      return parse_body_args(step);
    case FormatKind::LookupRows:
      return parse_lookup_rows(step);
    case FormatKind::PackList:
      return parse_pack_list(step);
    case FormatKind::Signature:
      return parse_signature(step);
    case FormatKind::ResultSig:
      return parse_result_signature(step);
    case FormatKind::ResultArrow:
      return parse_result_arrow();
    case FormatKind::InductionArg:
      return parse_induction(step);
    case FormatKind::IterArgs:
      return parse_iter_args(step);
    case FormatKind::KeyArg:
      return parse_key_arg(step);
    case FormatKind::Glue:
    case FormatKind::OptionalBegin:
    case FormatKind::OptionalEnd:
    case FormatKind::Region:
    case FormatKind::Cases:
      return true;
  }
  return true;
}

// Whether the current token begins the optional part whose first step is `pc`.
bool Parser::starts(size_t pc) const {
  const auto& steps = current_.format->steps;
  while (steps[pc].kind == FormatKind::Glue) ++pc;
  const FormatStep& step = steps[pc];
  switch (step.kind) {
    case FormatKind::Literal:
      return step.token == TokenKind::Word ? at_word(step.text) : at(step.token);
    case FormatKind::Operand:
      return at(TokenKind::Value) && !(token_.first_on_line && Lexer::starts_results(token_));
    case FormatKind::Clause:
    case FormatKind::OperandClause:
      return at_word(step.text);
    case FormatKind::Region:
      return at(TokenKind::LeftBrace);
    case FormatKind::Attr:
      switch (current_.format->info->attrs[static_cast<size_t>(step.a)].form) {
        case AttrForm::Dict:
          return at(TokenKind::LeftBrace);
        case AttrForm::String:
          return at(TokenKind::String);
        case AttrForm::SymbolDef:
          return at(TokenKind::Symbol);
        default:
          break;
      }
      [[fallthrough]];
    default:
      LOOM_CHECK(false, "the format's optional part starts with something undecidable");
  }
}

bool Parser::parse_literal(const FormatStep& step) {
  if (step.token == TokenKind::Word) {
    if (!at_word(step.text)) return expected_error(fmt::format("'{}'", step.text));
    advance();
    return true;
  }
  if (token_.kind == step.token) {
    advance();
    return true;
  }
  if (step.token == TokenKind::Colon && has_missing_ && at(TokenKind::LeftBrace)) {
    return parse_older_dict() && parse_literal(step);
  }
  // Too few or too many operands show as a wrong separator.
  const auto fixed = static_cast<size_t>(current_.format->fixed_operands);
  if (step.token == TokenKind::Comma && at(TokenKind::Colon) && operands_.size() < fixed) {
    return operand_count_error(fixed, operands_.size(), token_);
  }
  if (step.token == TokenKind::Colon && at(TokenKind::Comma) && operands_.size() >= fixed) {
    size_t found = operands_.size();
    const Token first = token_;
    while (take(TokenKind::Comma) && take(TokenKind::Value)) ++found;
    if (found > operands_.size()) return operand_count_error(operands_.size(), found, first);
  }
  return expected_error(fmt::format("'{}'", step.text));
}

bool Parser::operand_count_error(size_t expected, size_t found, const Token& at_token) {
  return error(Diag::ParseOperandCount, at_token,
               {{"op", std::string(current_.format->info->name)},
                {"expected", std::to_string(expected)},
                {"found", std::to_string(found)}});
}

void Parser::begin_group(int group) {
  const auto index = static_cast<size_t>(group);
  LOOM_CHECK(group_sizes_.size() <= index, "the format names operand groups out of order");
  while (group_sizes_.size() < index) group_sizes_.push_back(0);
  group_sizes_.push_back(0);
  group_begin_ = operand_count();
}

std::span<const ValueId> Parser::group(int index) const {
  const auto slot = static_cast<size_t>(index);
  if (slot >= group_sizes_.size()) return {};
  size_t begin = 0;
  for (size_t i = 0; i < slot; ++i) begin += group_sizes_[i];
  return std::span(operands_).subspan(begin, group_sizes_[slot]);
}

bool Parser::parse_operands(int group) {
  begin_group(group);
  const Arity arity = current_.format->info->operands[static_cast<size_t>(group)].arity;
  if (arity != Arity::Single && !at(TokenKind::Value)) return true;
  for (;;) {
    ValueId value;
    if (!use_value(value)) return false;
    operands_.push_back(value);
    if (arity != Arity::Variadic || !take(TokenKind::Comma)) break;
  }
  end_group();
  return true;
}

bool Parser::check_annotation(ValueId value, TypeId stated, const Token& at_token) {
  const TypeId actual = module_.type_of(value);
  if (actual == stated) return true;
  return error(Diag::TypeMismatch, at_token,
               {{"label_a", "'" + value_name_text(module_, value) + "'"},
                {"type_a", type_text(module_, actual)},
                {"label_b", "the type annotation"},
                {"type_b", type_text(module_, stated)}});
}

bool Parser::parse_types(int group_index) {
  const auto values = group(group_index);
  const bool list =
      current_.format->info->operands[static_cast<size_t>(group_index)].arity == Arity::Variadic;
  if (values.empty() && !type_starts()) return true;
  const Token first = token_;
  size_t count = 0;
  do {
    const Token place = token_;
    TypeId type;
    if (!parse_type(type)) return false;
    if (count < values.size() && !check_annotation(values[count], type, place)) return false;
    ++count;
  } while (list && take(TokenKind::Comma));
  return count == values.size() || operand_count_error(count, values.size(), first);
}

bool Parser::parse_result_types(int group_index) {
  const ResultSpec& spec = current_.format->info->results[static_cast<size_t>(group_index)];
  results_stated_ = true;
  do {
    TypeId type;
    if (!parse_type(type)) return false;
    result_types_.push_back(type);
  } while (spec.arity == Arity::Variadic && take(TokenKind::Comma));
  return true;
}

// ` -> (T, ...)`
bool Parser::parse_result_arrow() {
  if (!take(TokenKind::Arrow)) return true;
  results_stated_ = true;
  if (!need(TokenKind::LeftParen, "'('")) return false;
  if (take(TokenKind::RightParen)) return true;
  do {
    TypeId type;
    if (!parse_type(type)) return false;
    result_types_.push_back(type);
  } while (take(TokenKind::Comma));
  return need(TokenKind::RightParen, "')'");
}

// `word(%a, ...)`; the word alone is a modifier.
bool Parser::parse_operand_clause(const FormatStep& step) {
  begin_group(step.a);
  if (!at_word(step.text) || lexer_.peek() != '(') return true;
  const Token word = token_;
  advance();
  advance();
  if (!at(TokenKind::RightParen)) {
    do {
      ValueId value;
      if (!use_value(value)) return false;
      operands_.push_back(value);
    } while (take(TokenKind::Comma));
  }
  end_group();
  if (!need(TokenKind::RightParen, "')'")) return false;
  const OperandSpec& spec = current_.format->info->operands[static_cast<size_t>(step.a)];
  if (spec.arity == Arity::Optional && group_sizes_.back() > 1) {
    return operand_count_error(1, group_sizes_.back(), word);
  }
  return true;
}

// `{key = %a : T, ...}`; the operands are kept in the order of their keys.
bool Parser::parse_operand_dict(const FormatStep& step) {
  begin_group(step.a);
  if (!take_open_brace()) return true;
  struct Entry {
    KeyedEntry key;
    ValueId value;
  };
  std::vector<Entry> entries;
  while (!at(TokenKind::RightBrace)) {
    Entry entry;
    entry.key.key = token_;
    if (!at(TokenKind::Word)) return expected_error("a key");
    entry.key.entry.key = module_.strings.intern(token_.text());
    entry.key.entry.value = module_.attrs.intern(Attr::unit());
    advance();
    if (!need(TokenKind::Equal, "'='") || !use_value(entry.value)) return false;
    if (!need(TokenKind::Colon, "':'")) return false;
    const Token place = token_;
    TypeId type;
    if (!parse_type(type) || !check_annotation(entry.value, type, place)) return false;
    entries.push_back(entry);
    if (!take(TokenKind::Comma)) break;
  }
  std::vector<KeyedEntry> keys;
  for (const Entry& entry : entries) keys.push_back(entry.key);
  if (!check_keys(std::move(keys), Diag::ParseDuplicateOperandKey)) return false;
  std::ranges::sort(entries, {},
                    [&](const Entry& entry) { return module_.strings.text(entry.key.entry.key); });
  std::vector<DictEntry> sorted;
  for (const Entry& entry : entries) {
    operands_.push_back(entry.value);
    sorted.push_back(entry.key.entry);
  }
  end_group();
  if (!sorted.empty()) {
    Attr dict{.kind = AttrKind::Dict};
    dict.entries = sorted;
    attrs_[static_cast<size_t>(step.b)] = module_.attrs.intern(dict);
  }
  return need_close_brace();
}

// `[%i, 4]`
bool Parser::parse_index_list(const FormatStep& step) {
  begin_group(step.a);
  const AttrSpec& spec = current_.format->info->attrs[static_cast<size_t>(step.b)];
  if (!at(TokenKind::LeftBracket)) return spec.optional || expected_error("'['");
  advance();
  ints_.clear();
  if (!at(TokenKind::RightBracket)) {
    do {
      if (at(TokenKind::Value)) {
        ValueId value;
        if (!use_value(value)) return false;
        operands_.push_back(value);
        ints_.push_back(kDynamicIndex);
        continue;
      }
      int64_t number = 0;
      const Token place = token_;
      if (!at(TokenKind::Integer)) return expected_error("a value or an integer");
      if (!parse_integer(number)) return false;
      if (number == kDynamicIndex) {
        return error(Diag::ParseIntegerLiteral, place, {{"text", std::string(place.text())}});
      }
      ints_.push_back(number);
    } while (take(TokenKind::Comma));
  }
  end_group();
  if (!ints_.empty() || !spec.optional) {
    attrs_[static_cast<size_t>(step.b)] = module_.attrs.intern(Attr::int_list(ints_));
  }
  return need(TokenKind::RightBracket, "']'");
}

// `%iv`, whose type is that of operands which follow.
bool Parser::parse_induction(const FormatStep&) {
  if (!at(TokenKind::Value)) return expected_error("the name of the induction value");
  arg_names_.push_back({module_.strings.intern(token_.name()), token_});
  advance();
  return true;
}

// `(%a = %init : T, ...)`
bool Parser::parse_iter_args(const FormatStep& step) {
  begin_group(step.b);
  if (!take(TokenKind::LeftParen)) return true;
  if (!at(TokenKind::RightParen)) {
    do {
      if (!at(TokenKind::Value)) return expected_error("the name of a carried value");
      arg_names_.push_back({module_.strings.intern(token_.name()), token_});
      advance();
      ValueId init;
      if (!need(TokenKind::Equal, "'='") || !use_value(init)) return false;
      operands_.push_back(init);
      if (!need(TokenKind::Colon, "':'")) return false;
      const Token place = token_;
      TypeId type;
      if (!parse_type(type) || !check_annotation(init, type, place)) return false;
    } while (take(TokenKind::Comma));
  }
  end_group();
  return need(TokenKind::RightParen, "')'");
}

// The induction value has the type of the bounds, carried values that of their inits.
void Parser::bind_loop_args(RegionId region) {
  args_.clear();
  for (const FormatStep& step : current_.format->steps) {
    if (step.kind != FormatKind::InductionArg && step.kind != FormatKind::IterArgs) continue;
    for (ValueId source : group(step.b)) {
      const Name& name = arg_names_[args_.size()];
      args_.push_back(module_.create_value(module_.type_of(source), name.id));
      define(name.id, args_.back(), name.token);
    }
  }
  arg_names_.clear();
  module_.set_args(region, args_, static_cast<uint32_t>(args_.size()));
}

// `{`: creates the operation and its region, and suspends it.
bool Parser::enter_region(int region) {
  if (current_.scope_open && !settle_signature()) return false;
  if (!at(TokenKind::LeftBrace)) return expected_error("'{'");
  if (!current_.op.valid() && !create_op()) return false;
  return open_region(region, module_.op_region(current_.op, static_cast<unsigned>(region)));
}

// At `{`: suspends the operation, whose region `id` comes next.
bool Parser::open_region(int region, RegionId id) {
  const RegionSpec& spec = current_.format->info->regions[static_cast<size_t>(region)];
  if (current_.scope_open && current_.scope_region == region) {
    hide_result_names();
  } else {
    if (current_.scope_open) close_scope();
    open_scope(region, spec.isolated);
  }
  if (!arg_names_.empty()) bind_loop_args(id);
  module_.region(id).has_body = true;
  current_.last_body = id;
  advance();
  if (!lexer_.trivia.empty()) enter_trivia(id);
  frames_.push_back({current_, id, region_});
  region_ = id;
  current_ = {};
  return true;
}

}  // namespace loom
