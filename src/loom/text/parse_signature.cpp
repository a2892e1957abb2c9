#include "loom/text/parser_impl.h"

namespace loom {

void Parser::open_scope(int region, bool isolated) {
  current_.scope = names_in_scope_.open(isolated);
  current_.scope_region = static_cast<int8_t>(region);
  current_.scope_open = true;
}

void Parser::close_scope() {
  names_in_scope_.close(current_.scope);
  current_.scope_open = false;
  pending_.clear();
  result_names_.clear();
}

// `(%a: T, ...)`: the arguments of a region, or a further group of them.
bool Parser::parse_signature(const FormatStep& step) {
  if (!current_.op.valid() && !create_op()) return false;
  const bool further = current_.scope_open && current_.scope_region == step.a;
  if (!further) {
    if (current_.scope_open) {
      if (!settle_signature()) return false;
      close_scope();
    }
    open_scope(step.a, true);
    args_.clear();
  }
  const RegionId region = module_.op_region(current_.op, static_cast<unsigned>(step.a));
  signature_region_ = region;
  const auto split = static_cast<uint32_t>(args_.size());
  if (!need(TokenKind::LeftParen, "'('")) return false;
  if (!at(TokenKind::RightParen)) {
    do {
      if (!parse_signature_arg(false, args_)) return false;
    } while (take(TokenKind::Comma));
  }
  module_.set_args(region, args_, further ? split : static_cast<uint32_t>(args_.size()));
  return need(TokenKind::RightParen, "')'");
}

// ` -> (T, ...)` or ` -> (%r: T, ...)`
bool Parser::parse_result_signature(const FormatStep& step) {
  if (!take(TokenKind::Arrow)) return true;
  const RegionId region = module_.op_region(current_.op, static_cast<unsigned>(step.a));
  if (!need(TokenKind::LeftParen, "'('")) return false;
  result_values_.clear();
  if (!at(TokenKind::RightParen)) {
    do {
      if (!parse_signature_arg(true, result_values_)) return false;
      const StringId name = module_.value(result_values_.back()).name;
      if (name.valid()) result_names_.push_back(name);
    } while (take(TokenKind::Comma));
  }
  module_.set_args(region, result_values_, static_cast<uint32_t>(result_values_.size()));
  return need(TokenKind::RightParen, "')'");
}

// `%value: T` or `T`
bool Parser::parse_key_arg(const FormatStep& step) {
  if (!current_.op.valid() && !create_op()) return false;
  open_scope(step.a, true);
  args_.clear();
  signature_region_ = module_.op_region(current_.op, static_cast<unsigned>(step.a));
  if (!parse_signature_arg(true, args_)) return false;
  module_.set_args(signature_region_, args_, static_cast<uint32_t>(args_.size()));
  return true;
}

bool Parser::parse_signature_arg(bool name_optional, std::vector<ValueId>& out) {
  const Token name = token_;
  TypeId type;
  if (out.size() == kMaxValues) return operand_count_error(kMaxValues, kMaxValues + 1, name);
  if (at(TokenKind::Value)) {
    advance();
    if (!need(TokenKind::Colon, "':'")) return false;
  } else if (!name_optional) {
    return expected_error("an argument name");
  }
  if (!parse_type(type)) return false;
  ValueId value;
  if (name.kind == TokenKind::Value) {
    if (!bind_signature_name(name, type, value)) return false;
  } else {
    value = module_.create_value(type, StringId());
  }
  out.push_back(value);
  return true;
}

// A name that a type mentioned before keeps the value that the type refers to.
bool Parser::bind_signature_name(const Token& name, TypeId type, ValueId& out) {
  const StringId id = module_.strings.intern(name.name());
  out = names_in_scope_.find(id);
  if (out.valid() && out != poison_ && module_.value(out).owner == kUnbound) {
    module_.value(out).owner = 0;
    module_.value(out).type = type;
    return true;
  }
  out = module_.create_value(type, id);
  define(id, out, name);  // a second definition is reported, and the rest is still worth reading
  return true;
}

// The end of the signature: names that were mentioned and never bound.
bool Parser::settle_signature() {
  bool complete = true;
  for (const Pending& pending : pending_) {
    if (module_.value(pending.value).owner != kUnbound) continue;
    if (current_.format->function_like) {
      module_.set_extent_owner(pending.value, signature_region_);
    } else {
      complete = error(Diag::ParseUnboundForward, pending.token,
                       {{"name", std::string(pending.token.text())}});
    }
  }
  pending_.clear();
  return complete;
}

// The body does not see the names of the results.
void Parser::hide_result_names() {
  for (StringId name : result_names_) names_in_scope_.bind(name, ValueId());
  result_names_.clear();
}

}  // namespace loom
