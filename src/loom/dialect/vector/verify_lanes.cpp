// Rules of the operations that compute in each lane or combine lanes.
#include <fmt/core.h>

#include <algorithm>

#include "loom/dialect/vector/rules.h"

namespace loom::verify {
namespace {

using enum OpKind;

// An operand of the same shape as the result.
bool check_result_shape(VerifyContext& c, OpId op, ValueId operand) {
  return check_same_shape(c, op, result_label(c, op), result_type(c, op), operand_label(c, operand),
                          type_of(c, operand));
}

}  // namespace

void vector_select(VerifyContext& c, OpId op) {
  const ValueId b = c.module.operand(op, operand_slot(VectorSelect, "b"));
  if (c.module.type_of(b) != c.module.type_of(c.module.result(op))) {
    c.type_mismatch(op, operand_label(c, b), c.module.type_of(b), result_label(c, op),
                    c.module.type_of(c.module.result(op)));
  }
  check_result_shape(c, op, c.module.operand(op, operand_slot(VectorSelect, "m")));
}

void vector_test(VerifyContext& c, OpId op) { check_result_shape(c, op, c.module.operand(op, 0)); }

void vector_cast(VerifyContext& c, OpId op) {
  const OpKind kind = c.module.op(op).kind;
  const ScalarKind from = type_of(c, c.module.operand(op, 0)).element;
  const ScalarKind to = result_type(c, op).element;
  check_result_shape(c, op, c.module.operand(op, 0));
  if (is_float(from) != is_float(to)) return;
  const bool narrows = kind == VectorFPTrunc || kind == VectorTruncI;
  const unsigned from_bits = scalar_bits(from);
  const unsigned to_bits = scalar_bits(to);
  if (narrows ? to_bits < from_bits : to_bits > from_bits) return;
  c.bad_result(op, fmt::format("a vector of {} {} than {}", is_float(from) ? "floats" : "integers",
                               narrows ? "narrower" : "wider", scalar_name(from)));
}

void vector_gelu(VerifyContext& c, OpId op) {
  static_assert(attr_slot(VectorGeluF, "form") == attr_slot(ScalarGeluF, "form") &&
                attr_slot(VectorGeluF, "scale") == attr_slot(ScalarGeluF, "scale"));
  scalar_gelu(c, op);
}

void vector_bitcast(VerifyContext& c, OpId op) {
  const Type& from = type_of(c, c.module.operand(op, 0));
  const Type& to = result_type(c, op);
  const auto same = same_bits(from, scalar_bits(from.element), to, scalar_bits(to.element));
  if (same && *same) return;
  c.bad_result(op, fmt::format("a vector of as many bits as {}", c.type(c.module.operand(op, 0))));
}

namespace {

// The bit field of an operation inside `bits` bits: STRUCTURE/014.
bool check_field(VerifyContext& c, OpId op, int64_t offset, int64_t width, unsigned bits) {
  if (offset < 0) {
    c.bad_attribute(op, "offset", fmt::format("{} is negative", offset));
  } else if (width <= 0) {
    c.bad_attribute(op, "width", fmt::format("{} is not positive", width));
  } else if (width > static_cast<int64_t>(bits) || offset > static_cast<int64_t>(bits) - width) {
    c.bad_attribute(
        op, "width",
        fmt::format("bits {} to {} are outside the {} bits of a lane", offset,
                    static_cast<uint64_t>(offset) + static_cast<uint64_t>(width) - 1, bits));
  } else {
    return true;
  }
  return false;
}

}  // namespace

void vector_bitfield(VerifyContext& c, OpId op) {
  static_assert(
      attr_slot(VectorBitfieldExtractU, "offset") == attr_slot(VectorBitfieldExtractS, "offset") &&
      attr_slot(VectorBitfieldExtractU, "width") == attr_slot(VectorBitfieldExtractS, "width"));
  const int64_t offset = c.module.attr(op, attr_slot(VectorBitfieldExtractU, "offset")).value();
  const int64_t width = c.module.attr(op, attr_slot(VectorBitfieldExtractU, "width")).value();
  const ValueId source = c.module.operand(op, 0);
  check_result_shape(c, op, source);
  if (!check_field(c, op, offset, width, scalar_bits(type_of(c, source).element))) return;
  if (static_cast<int64_t>(scalar_bits(result_type(c, op).element)) < width) {
    c.bad_result(op, fmt::format("a vector of integers of at least {} bits", width));
  }
}

void vector_bitfield_insert(VerifyContext& c, OpId op) {
  const int64_t offset = c.module.attr(op, attr_slot(VectorBitfieldInsert, "offset")).value();
  const int64_t width = c.module.attr(op, attr_slot(VectorBitfieldInsert, "width")).value();
  const ValueId field = c.module.operand(op, operand_slot(VectorBitfieldInsert, "f"));
  check_result_shape(c, op, field);
  if (!check_field(c, op, offset, width, scalar_bits(result_type(c, op).element))) return;
  if (static_cast<int64_t>(scalar_bits(type_of(c, field).element)) < width) {
    bad_operand(c, op, field, fmt::format("a vector of integers of at least {} bits", width));
  }
}

void vector_bitpack(VerifyContext& c, OpId op) {
  static_assert(attr_slot(VectorBitpack, "width") == attr_slot(VectorBitunpackU, "width"));
  const bool packs = c.module.op(op).kind == VectorBitpack;
  const int64_t width = c.module.attr(op, attr_slot(VectorBitpack, "width")).value();
  const Type& from = type_of(c, c.module.operand(op, 0));
  const Type& to = result_type(c, op);
  const unsigned lane = scalar_bits(packs ? from.element : to.element);
  if (width <= 0 || width > static_cast<int64_t>(lane)) {
    return c.bad_attribute(op, "width",
                           fmt::format("{} is not from 1 to {}, the bits of a lane", width, lane));
  }
  const auto payload = static_cast<uint64_t>(width);
  const auto same = packs ? same_bits(from, payload, to, scalar_bits(to.element))
                          : same_bits(from, scalar_bits(from.element), to, payload);
  if (same && *same) return;
  c.bad_result(op, fmt::format("a vector that {} the bits of {} exactly",
                               packs ? "stores" : "takes", c.type(c.module.operand(op, 0))));
}

// --- reductions ---------------------------------------------------------------------------------

namespace {

// The kind against the element, and the float flags against the kind: TYPE/003.
void check_kind(VerifyContext& c, OpId op, CombiningKind kind, uint64_t flags) {
  const ValueId vector = c.module.operand(op, 0);
  const std::string_view word = enum_info(EnumId::CombiningKind).cases[static_cast<size_t>(kind)];
  const ScalarKind element = type_of(c, vector).element;
  const bool fits = is_float_kind(kind) ? is_float(element) : is_integer(element);
  if (!fits) {
    bad_operand(c, op, vector,
                fmt::format("a vector of {} to combine by {}",
                            is_float_kind(kind) ? "floats" : "fixed-width integers", word));
  } else if (flags != 0 && !is_float_kind(kind)) {
    bad_operand(c, op, vector, fmt::format("a vector of floats, as {} has float flags", word));
  }
}

}  // namespace

void vector_reduce(VerifyContext& c, OpId op) {
  check_kind(c, op,
             static_cast<CombiningKind>(c.module.attr(op, attr_slot(VectorReduce, "kind")).bits),
             flags_of(c.module, op, attr_slot(VectorReduce, "flags")));
  check_elements(c, op, result_type(c, op), type_of(c, c.module.operand(op, 0)));
}

void vector_reduce_axes(VerifyContext& c, OpId op) {
  check_kind(
      c, op,
      static_cast<CombiningKind>(c.module.attr(op, attr_slot(VectorReduceAxes, "kind")).bits),
      flags_of(c.module, op, attr_slot(VectorReduceAxes, "flags")));
  const ValueId vector = c.module.operand(op, 0);
  const Type& type = type_of(c, vector);
  const auto axes = c.module.attr(op, attr_slot(VectorReduceAxes, "axes")).ints;
  if (axes.empty()) return c.bad_attribute(op, "axes", "it names no axis");
  for (size_t i = 0; i < axes.size(); ++i) {
    if (!check_axis(c, op, axes[i], vector)) return;
    if (i > 0 && axes[i] <= axes[i - 1]) {
      return c.bad_attribute(op, "axes", "the axes are not in ascending order");
    }
  }
  std::vector<Dim> left;
  for (size_t axis = 0; axis < type.rank(); ++axis) {
    if (std::ranges::find(axes, static_cast<int64_t>(axis)) == axes.end()) {
      left.push_back(type.dims[axis]);
    }
  }
  if (!is_vector_of(result_type(c, op), left, type.element)) {
    c.bad_result(op, vector_text(c, left, type.element));
  }
}

void vector_dot(VerifyContext& c, OpId op) {
  const ValueId a = c.module.operand(op, 0);
  const ValueId b = c.module.operand(op, 1);
  if (c.module.type_of(a) != c.module.type_of(b)) {
    c.type_mismatch(op, operand_label(c, b), c.module.type_of(b), operand_label(c, a),
                    c.module.type_of(a));
  }
  check_elements(c, op, result_type(c, op), type_of(c, a));
}

void vector_dot_groups(VerifyContext& c, OpId op) {
  const OpKind kind = c.module.op(op).kind;
  const ValueId a = c.module.operand(op, 0);
  const ValueId b = c.module.operand(op, 1);
  if (c.module.type_of(a) != c.module.type_of(b)) {
    return c.type_mismatch(op, operand_label(c, b), c.module.type_of(b), operand_label(c, a),
                           c.module.type_of(a));
  }
  const int64_t group = kind == VectorDot2F ? 2 : kind == VectorDot4I ? 4 : 1;
  const Type& from = type_of(c, a);
  const Type& to = result_type(c, op);
  bool fits = from.rank() == to.rank() && (group == 1 || to.rank() > 0);
  for (size_t axis = 0; fits && axis < to.rank(); ++axis) {
    const Dim x = from.dims[axis];
    const Dim y = to.dims[axis];
    if (group == 1 || axis + 1 < to.rank()) {
      fits = x == y;
    } else if (!x.is_dynamic() && !y.is_dynamic()) {
      fits = x.extent() % group == 0 && x.extent() / group == y.extent();
    }
  }
  if (fits) return;
  c.error(op, Diag::ShapeContraction,
          {{"op", std::string(c.op_name(op))},
           {"detail", fmt::format("groups of {} neighbours of {} into {}", group, c.type(a),
                                  c.type(c.module.result(op)))}});
}

}  // namespace loom::verify
