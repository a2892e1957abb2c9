// What the rows of scalar/ops.def cannot say.
#include <fmt/core.h>

#include "loom/dialect/hooks.h"
#include "loom/dialect/numeric.h"

namespace loom::verify {
namespace {

std::string_view literal_word(ScalarKind kind) {
  if (kind == ScalarKind::I1) return "true, false, 0 or 1";
  return is_float(kind) ? "a float literal" : "an integer literal";
}

bool is_literal_kind(AttrKind attr, ScalarKind kind) {
  if (is_float(kind)) return attr == AttrKind::Float;
  return attr == AttrKind::Integer || (attr == AttrKind::Bool && kind == ScalarKind::I1);
}

}  // namespace

void check_literal(VerifyContext& c, OpId op, const Attr& literal, ScalarKind kind) {
  if (from_literal(literal, kind)) return;
  const bool out_of_range = is_literal_kind(literal.kind, kind) && kind != ScalarKind::I1;
  c.bad_literal(op, "value",
                out_of_range ? fmt::format("the literal does not fit {}", scalar_name(kind))
                             : fmt::format("{} takes {}", scalar_name(kind), literal_word(kind)));
}

void scalar_constant(VerifyContext& c, OpId op) {
  check_literal(c, op, c.module.attr(op, attr_slot(OpKind::ScalarConstant, "value")),
                c.module.types[c.module.type_of(c.module.result(op))].element);
}

void scalar_cast(VerifyContext& c, OpId op) {
  const OpKind kind = c.module.op(op).kind;
  const ScalarKind from = c.module.types[c.module.type_of(c.module.operand(op, 0))].element;
  const ScalarKind to = c.module.types[c.module.type_of(c.module.result(op))].element;
  const unsigned from_bits = scalar_bits(from);
  const unsigned to_bits = scalar_bits(to);
  if (kind == OpKind::ScalarBitcast) {
    if (from_bits != to_bits) {
      c.bad_result(op, fmt::format("a scalar of {} bits like {}", from_bits, scalar_name(from)));
    }
    return;
  }
  const bool narrows = kind == OpKind::ScalarFPTrunc || kind == OpKind::ScalarTruncI;
  if (narrows ? to_bits < from_bits : to_bits > from_bits) return;
  c.bad_result(op, fmt::format("{} {} than {}", is_float(from) ? "a float" : "an integer",
                               narrows ? "narrower" : "wider", scalar_name(from)));
}

void scalar_bitfield(VerifyContext& c, OpId op) {
  using enum OpKind;
  const int64_t offset = c.module.attr(op, attr_slot(ScalarBitfieldExtractU, "offset")).value();
  const int64_t width = c.module.attr(op, attr_slot(ScalarBitfieldExtractU, "width")).value();
  const ScalarKind from = c.module.types[c.module.type_of(c.module.operand(op, 0))].element;
  const ScalarKind to = c.module.types[c.module.type_of(c.module.result(op))].element;
  const int64_t bits = scalar_bits(from);
  if (offset < 0) c.bad_attribute(op, "offset", fmt::format("{} is negative", offset));
  if (width <= 0) c.bad_attribute(op, "width", fmt::format("{} is not positive", width));
  if (offset < 0 || width <= 0) return;
  if (width > bits || offset > bits - width) {
    c.bad_attribute(
        op, "width",
        fmt::format("{} bits from bit {} on do not fit {}", width, offset, scalar_name(from)));
  } else if (scalar_bits(to) < width) {
    c.bad_result(op, fmt::format("an integer of at least {} bits", width));
  }
}

void scalar_gelu(VerifyContext& c, OpId op) {
  using enum OpKind;
  const auto form = static_cast<GeluForm>(c.module.attr(op, attr_slot(ScalarGeluF, "form")).bits);
  const bool has_scale = c.module.has_attr(op, attr_slot(ScalarGeluF, "scale"));
  if (form == GeluForm::Logistic && !has_scale) {
    c.bad_literal(op, "scale", "the logistic form needs it");
  } else if (form != GeluForm::Logistic && has_scale) {
    c.bad_literal(op, "scale", "only the logistic form takes it");
  }
}

}  // namespace loom::verify
