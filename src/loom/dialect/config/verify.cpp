// What the rows of config/ops.def cannot say.
#include <fmt/core.h>

#include "loom/dialect/encoding_info.h"
#include "loom/dialect/hooks.h"
#include "loom/dialect/numeric.h"
#include "loom/ir/ir_text.h"

namespace loom::verify {
namespace {

constexpr std::string_view kKeyTypes = "a scalar or an encoding";

bool check_key_type(VerifyContext& c, OpId op, TypeId type) {
  if (c.module.types[type].is_scalar() || is_encoding_type(c.module.types[type].kind)) return true;
  c.error(op, Diag::TypeResultConstraint,
          {{"op", std::string(c.op_name(op))},
           {"result", "@" + std::string(symbol_text(c.module, op))},
           {"type", type_text(c.module, type)},
           {"constraint", std::string(kKeyTypes)}});
  return false;
}

}  // namespace

void config_decl(VerifyContext& c, OpId op) {
  const auto args = c.module.args(c.module.op_region(op, region_slot(OpKind::ConfigDecl, "value")));
  if (c.same_count(op, "declared values", args.size(), "a configuration key", 1)) {
    check_key_type(c, op, c.module.type_of(args[0]));
  }
}

void config_def(VerifyContext& c, OpId op) {
  const TypeId type = c.module.attr(op, attr_slot(OpKind::ConfigDef, "type")).type();
  if (!check_key_type(c, op, type)) return;
  const Type& key_type = c.module.types[type];
  const Attr& literal = c.module.attr(op, attr_slot(OpKind::ConfigDef, "value"));
  if (key_type.is_scalar() && from_literal(literal, key_type.element)) return;
  if (!key_type.is_scalar() && literal.kind == AttrKind::Encoding) {
    const AttrId value = c.module.attr_ids(op)[attr_slot(OpKind::ConfigDef, "value")];
    static_encoding(c, op, value, {});
    const EncodingFamilyInfo* const family = encoding_family_of(c.module, value);
    if (family == nullptr || key_type.kind == TypeKind::Encoding ||
        role_of(key_type.kind) == family->role) {
      return;
    }
    c.type_mismatch(op, attr_text(c.module, value), c.module.types.opaque(role_type(family->role)),
                    fmt::format("'@{}'", symbol_text(c.module, op)), type);
    return;
  }
  c.bad_literal(op, "value", fmt::format("the literal does not fit {}", type_text(c.module, type)));
}

void config_get(VerifyContext& c, OpId op) {
  using enum OpKind;
  const OpId key =
      c.resolve(op, attr_slot(ConfigGet, "key"), {ConfigDecl, ConfigDef}, "configuration key");
  if (!key.valid()) return;
  TypeId declared;
  if (c.module.op(key).kind == ConfigDef) {
    declared = c.module.attr(key, attr_slot(ConfigDef, "type")).type();
  } else {
    const auto args = c.module.args(c.module.op_region(key, region_slot(ConfigDecl, "value")));
    if (args.size() != 1) return;
    declared = c.module.type_of(args[0]);
  }
  const TypeId found = c.module.type_of(c.module.result(op));
  if (found != declared) {
    c.type_mismatch(op, "result " + c.name(c.module.result(op)), found,
                    fmt::format("'@{}'", symbol_text(c.module, key)), declared);
  }
}

}  // namespace loom::verify
