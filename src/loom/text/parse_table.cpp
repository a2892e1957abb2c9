// Parts of operations that are written as a table: cases, rows of values, packed sizes. And the
// arguments of a body that is not isolated.
#include "loom/text/parser_impl.h"

namespace loom {

// `{ case K { ... } ... default { ... } }`: enters the next case, or is done at the closing brace.
Parser::Progress Parser::next_case(const FormatStep& step) {
  const auto fail = [&](bool) {
    if (current_.in_cases) open_braces_ = 1;
    return Progress::Failed;
  };
  if (!current_.in_cases) {
    if (!at(TokenKind::LeftBrace)) return fail(expected_error("'{'"));
    if (!current_.op.valid() && !create_op()) return Progress::Failed;
    advance();
    current_.in_cases = true;
    current_.last_body = {};
  }
  if (cases_.size() > current_.cases_begin) case_trivia(cases_.back().region);
  if (current_.last_case) {
    if (!at(TokenKind::RightBrace)) return fail(expected_error("'}'"));
    return close_cases(step) ? Progress::Done : fail(false);
  }
  Case next;
  int region = step.a;
  if (at_word("case")) {
    advance();
    if (!parse_integer(next.key)) return fail(false);
    if (cases_.size() - current_.cases_begin == kMaxValues - 1) {
      return fail(operand_count_error(kMaxValues, kMaxValues + 1, token_));
    }
  } else if (at_word("default")) {
    advance();
    current_.last_case = true;
    ++region;
  } else {
    return fail(expected_error("'case' or 'default'"));
  }
  if (!at(TokenKind::LeftBrace)) return fail(expected_error("'{'"));
  next.region = module_.create_region(current_.op);
  cases_.push_back(next);
  --current_.pc;  // the walk comes back to this step
  return open_region(region, next.region) ? Progress::Entered : fail(false);
}

// At the brace behind the last case: the operation gets its regions and keys.
bool Parser::close_cases(const FormatStep& step) {
  advance();
  std::vector<RegionId> regions;
  std::vector<int64_t> keys;
  for (size_t i = current_.cases_begin; i < cases_.size(); ++i) {
    regions.push_back(cases_[i].region);
    if (i + 1 < cases_.size()) keys.push_back(cases_[i].key);
  }
  cases_.resize(current_.cases_begin);
  module_.set_regions(current_.op, regions);
  module_.set_attr(current_.op, static_cast<unsigned>(step.b),
                   module_.attrs.intern(Attr::int_list(keys)));
  current_.last_body = {};  // what follows the outer brace belongs to the operation
  current_.in_cases = false;
  return true;
}

// `(%a: T, ...)` before a body that sees the values around it
bool Parser::parse_body_args(const FormatStep& step) {
  if (!at(TokenKind::LeftParen)) return true;
  const RegionSpec& spec = current_.format->info->regions[static_cast<size_t>(step.a)];
  open_scope(step.a, spec.isolated);
  args_.clear();
  signature_region_ = module_.op_region(current_.op, static_cast<unsigned>(step.a));
  advance();
  if (!at(TokenKind::RightParen)) {
    do {
      if (!parse_signature_arg(false, args_)) return false;
    } while (take(TokenKind::Comma));
  }
  module_.set_args(signature_region_, args_, static_cast<uint32_t>(args_.size()));
  return need(TokenKind::RightParen, "')'");
}

// `{ K = (%a, ...), ... }`
bool Parser::parse_lookup_rows(const FormatStep& step) {
  begin_group(step.a);
  if (!take_open_brace()) return expected_error("'{'");
  ints_.clear();
  size_t width = kMaxValues + 1;  // not known before the first row
  while (!at(TokenKind::RightBrace)) {
    int64_t key = 0;
    if (!parse_integer(key) || !need(TokenKind::Equal, "'='") || !parse_lookup_row(width)) {
      return false;
    }
    ints_.push_back(key);
    if (!take(TokenKind::Comma)) break;
  }
  end_group();
  attrs_[static_cast<size_t>(step.b)] = module_.attrs.intern(Attr::int_list(ints_));
  return need_close_brace();
}

bool Parser::parse_lookup_row(size_t& width) {
  const Token open = token_;
  if (!need(TokenKind::LeftParen, "'('")) return false;
  const size_t begin = operands_.size();
  if (!at(TokenKind::RightParen)) {
    do {
      ValueId value;
      if (!use_value(value)) return false;
      operands_.push_back(value);
    } while (take(TokenKind::Comma));
  }
  if (!need(TokenKind::RightParen, "')'")) return false;
  const size_t found = operands_.size() - begin;
  if (width > kMaxValues) width = found;
  return found == width || error(Diag::ParseRowWidth, open,
                                 {{"op", std::string(current_.format->info->name)},
                                  {"expected", std::to_string(width)},
                                  {"found", std::to_string(found)}});
}

// `[align(N) %a, ...]`
bool Parser::parse_pack_list(const FormatStep& step) {
  begin_group(step.a);
  if (!need(TokenKind::LeftBracket, "'['")) return false;
  ints_.clear();
  do {
    if (!at_word("align")) return expected_error("'align'");
    advance();
    int64_t alignment = 0;
    ValueId value;
    if (!need(TokenKind::LeftParen, "'('") || !parse_integer(alignment) ||
        !need(TokenKind::RightParen, "')'") || !use_value(value)) {
      return false;
    }
    ints_.push_back(alignment);
    operands_.push_back(value);
  } while (take(TokenKind::Comma));
  end_group();
  attrs_[static_cast<size_t>(step.b)] = module_.attrs.intern(Attr::int_list(ints_));
  return need(TokenKind::RightBracket, "']'");
}

}  // namespace loom
