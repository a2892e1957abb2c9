// Rules of the operations that construct vectors and move lanes.
#include <fmt/core.h>

#include "loom/dialect/vector/rules.h"

namespace loom::verify {
namespace {

using enum OpKind;

std::span<const int64_t> ints(const VerifyContext& c, OpId op, unsigned slot) {
  return c.module.attr(op, slot).ints;
}

// The rank of an operand against the rank of the result: SHAPE/001.
bool check_rank(VerifyContext& c, OpId op, const Type& from, const Type& to) {
  if (from.rank() == to.rank()) return true;
  bad_shape(
      c, op,
      fmt::format("the operand has rank {} but the result has rank {}", from.rank(), to.rank()));
  return false;
}

// Leading indices of `vector`: their number and their bounds.
bool check_leading(VerifyContext& c, OpId op, ValueId vector, std::span<const ValueId> operands,
                   std::span<const int64_t> places) {
  const Type& type = type_of(c, vector);
  if (places.size() > type.rank()) {
    c.error(op, Diag::SubrangeOffsets,
            {{"op", std::string(c.op_name(op))},
             {"expected", fmt::format("at most {}", type.rank())},
             {"count", std::to_string(places.size())}});
    return false;
  }
  const auto exact = exact_places(c, op, operands, places);
  for (size_t axis = 0; axis < exact.size(); ++axis) {
    const Dim extent = type.dims[axis];
    if (!exact[axis]) continue;
    const bool outside =
        *exact[axis] < 0 || (!extent.is_dynamic() && *exact[axis] >= extent.extent());
    if (outside) out_of_bounds(c, op, std::to_string(*exact[axis]), extent, axis);
  }
  return true;
}

}  // namespace

void vector_constant(VerifyContext& c, OpId op) {
  check_literal(c, op, c.module.attr(op, attr_slot(VectorConstant, "value")),
                result_type(c, op).element);
}

void vector_splat(VerifyContext& c, OpId op) {
  check_elements(c, op, type_of(c, c.module.operand(op, 0)), result_type(c, op));
}

void vector_iota(VerifyContext& c, OpId op) {
  check_elements(c, op, type_of(c, c.module.operand(op, 0)), result_type(c, op));
}

void vector_broadcast(VerifyContext& c, OpId op) {
  const ValueId source = c.module.operand(op, 0);
  const Type& from = type_of(c, source);
  const Type& to = result_type(c, op);
  check_elements(c, op, from, to);
  if (from.rank() > to.rank()) {
    return bad_shape(
        c, op, fmt::format("a vector of rank {} cannot shrink to rank {}", from.rank(), to.rank()));
  }
  const size_t grown = to.rank() - from.rank();
  for (size_t axis = 0; axis < from.rank(); ++axis) {
    const Dim a = from.dims[axis];
    const Dim b = to.dims[grown + axis];
    if (a == b || a == Dim::fixed(1)) continue;
    const bool unknown = a.is_dynamic() || b.is_dynamic();
    c.error(op, unknown ? Diag::ShapeBroadcastUnknown : Diag::ShapeBroadcast,
            {{"axis", std::to_string(axis)},
             {"type", c.type(source)},
             {"extent",
              b.is_dynamic() ? value_name_text(c.module, b.value()) : std::to_string(b.extent())}});
  }
}

void vector_from_elements(VerifyContext& c, OpId op) {
  const Type& type = result_type(c, op);
  const auto lanes = static_lanes(type);
  if (!lanes) return c.bad_result(op, "a vector with static extents");
  const auto operands = c.module.operands(op);
  if (!c.same_count(op, "elements", operands.size(), "lanes", static_cast<size_t>(*lanes))) return;
  for (const ValueId operand : operands) {
    if (!check_elements(c, op, type_of(c, operand), type)) return;
  }
}

void vector_extract(VerifyContext& c, OpId op) {
  const ValueId vector = c.module.operand(op, 0);
  const Type& type = type_of(c, vector);
  const auto places = ints(c, op, attr_slot(VectorExtract, "static_index"));
  const auto operands = operand_group(c.module, op, operand_slot(VectorExtract, "index"));
  if (!check_leading(c, op, vector, operands, places)) return;
  const auto left = type.dims.subspan(places.size());
  if (!is_vector_of(result_type(c, op), left, type.element)) {
    c.bad_result(op, vector_text(c, left, type.element));
  }
}

void vector_insert(VerifyContext& c, OpId op) {
  const ValueId part = c.module.operand(op, operand_slot(VectorInsert, "x"));
  const ValueId vector = c.module.operand(op, operand_slot(VectorInsert, "v"));
  const Type& type = type_of(c, vector);
  const auto places = ints(c, op, attr_slot(VectorInsert, "static_index"));
  const auto operands = operand_group(c.module, op, operand_slot(VectorInsert, "index"));
  if (!check_leading(c, op, vector, operands, places)) return;
  const auto left = type.dims.subspan(places.size());
  if (!is_vector_of(type_of(c, part), left, type.element)) {
    bad_operand(c, op, part, vector_text(c, left, type.element));
  }
}

void vector_slice(VerifyContext& c, OpId op) {
  const Type& from = type_of(c, c.module.operand(op, 0));
  const Type& to = result_type(c, op);
  check_elements(c, op, to, from);
  if (!check_rank(c, op, from, to)) return;
  const auto places = ints(c, op, attr_slot(VectorSlice, "static_index"));
  if (places.size() != from.rank()) {
    c.error(op, Diag::SubrangeOffsets,
            {{"op", std::string(c.op_name(op))},
             {"expected", std::to_string(from.rank())},
             {"count", std::to_string(places.size())}});
    return;
  }
  const auto exact =
      exact_places(c, op, operand_group(c.module, op, operand_slot(VectorSlice, "index")), places);
  for (size_t axis = 0; axis < exact.size(); ++axis) {
    const Dim extent = from.dims[axis];
    const int64_t offset = exact[axis].value_or(0);
    const int64_t width = to.dims[axis].is_dynamic() ? 0 : to.dims[axis].extent();
    const bool outside =
        offset < 0 ||
        (!extent.is_dynamic() && (offset > extent.extent() || width > extent.extent() - offset));
    if (outside) out_of_bounds(c, op, fmt::format("{} + {}", offset, width), extent, axis);
  }
}

void vector_concat(VerifyContext& c, OpId op) {
  const auto parts = c.module.operands(op);
  if (parts.empty()) {
    c.error(op, Diag::StructureOperandCount,
            {{"op", std::string(c.op_name(op))}, {"expected", "at least 1"}, {"found", "0"}});
    return;
  }
  const Type& to = result_type(c, op);
  const int64_t axis = c.module.attr(op, attr_slot(VectorConcat, "axis")).value();
  if (!check_axis(c, op, axis, c.module.result(op))) return;
  int64_t total = 0;
  bool known = true;
  for (const ValueId part : parts) {
    const Type& from = type_of(c, part);
    if (!check_elements(c, op, from, to) || !check_rank(c, op, from, to)) return;
    for (size_t i = 0; i < to.rank(); ++i) {
      if (i == static_cast<size_t>(axis) || from.dims[i] == to.dims[i]) continue;
      c.error(op, Diag::ShapeDiffers, {{"a", operand_label(c, part)}, {"b", result_label(c, op)}});
      return;
    }
    const Dim extent = from.dims[static_cast<size_t>(axis)];
    known = known && !extent.is_dynamic() &&
            !__builtin_add_overflow(total, extent.is_dynamic() ? 0 : extent.extent(), &total);
  }
  const Dim extent = to.dims[static_cast<size_t>(axis)];
  if (known && !extent.is_dynamic() && extent.extent() != total) {
    bad_shape(c, op,
              fmt::format("the operands have {} together on axis {} but the result has {}", total,
                          axis, extent.extent()));
  }
}

void vector_transpose(VerifyContext& c, OpId op) {
  const ValueId source = c.module.operand(op, 0);
  const Type& from = type_of(c, source);
  const Type& to = result_type(c, op);
  check_elements(c, op, to, from);
  if (!check_rank(c, op, from, to)) return;
  const auto permutation = ints(c, op, attr_slot(VectorTranspose, "permutation"));
  if (permutation.size() != from.rank()) {
    c.error(op, Diag::SubrangeEntries,
            {{"op", std::string(c.op_name(op))},
             {"count", std::to_string(permutation.size())},
             {"type", c.type(source)},
             {"expected", std::to_string(from.rank())}});
    return;
  }
  std::vector<bool> used(from.rank());
  for (const int64_t axis : permutation) {
    if (!check_axis(c, op, axis, source)) return;
    if (used[static_cast<size_t>(axis)]) {
      return c.bad_attribute(op, "permutation", fmt::format("axis {} occurs twice", axis));
    }
    used[static_cast<size_t>(axis)] = true;
  }
  for (size_t i = 0; i < to.rank(); ++i) {
    if (to.dims[i] == from.dims[static_cast<size_t>(permutation[i])]) continue;
    bad_shape(c, op,
              fmt::format("axis {} of the result must have the extent of axis {} of the operand", i,
                          permutation[i]));
  }
}

void vector_shuffle(VerifyContext& c, OpId op) {
  const ValueId source = c.module.operand(op, 0);
  const Type& type = type_of(c, source);
  const auto lanes = static_lanes(type);
  if (type.rank() != 1 || !lanes) return bad_operand(c, op, source, "a static vector of rank 1");
  const auto entries = ints(c, op, attr_slot(VectorShuffle, "lanes"));
  if (entries.size() != static_cast<size_t>(*lanes)) {
    c.error(op, Diag::SubrangeEntries,
            {{"op", std::string(c.op_name(op))},
             {"count", std::to_string(entries.size())},
             {"type", c.type(source)},
             {"expected", std::to_string(*lanes)}});
    return;
  }
  for (const int64_t entry : entries) {
    if (entry < 0 || entry >= *lanes) {
      return out_of_bounds(c, op, std::to_string(entry), type.dims[0], 0);
    }
  }
}

namespace {

// `whole` has twice the extent of `half` on one axis, and the same on the others.
void check_halves(VerifyContext& c, OpId op, ValueId half, ValueId whole, int64_t axis) {
  const Type& small = type_of(c, half);
  const Type& large = type_of(c, whole);
  check_elements(c, op, small, large);
  if (!check_axis(c, op, axis, whole)) return;
  if (small.rank() != large.rank()) {
    return bad_shape(c, op,
                     fmt::format("{} has rank {} but {} has rank {}", c.name(half), small.rank(),
                                 c.name(whole), large.rank()));
  }
  for (size_t i = 0; i < large.rank(); ++i) {
    const Dim a = small.dims[i];
    const Dim b = large.dims[i];
    if (i != static_cast<size_t>(axis)) {
      if (a == b) continue;
      bad_shape(c, op, fmt::format("the extents of axis {} differ", i));
    } else if (!b.is_dynamic() && b.extent() % 2 != 0) {
      bad_shape(c, op,
                fmt::format("axis {} of {} has the odd extent {}", i, c.name(whole), b.extent()));
    } else if (!a.is_dynamic() && !b.is_dynamic() && b.extent() / 2 != a.extent()) {
      bad_shape(c, op,
                fmt::format("axis {} of {} must have half the extent of {}", i, c.name(half),
                            c.name(whole)));
    }
  }
}

}  // namespace

void vector_interleave(VerifyContext& c, OpId op) {
  check_halves(c, op, c.module.operand(op, 0), c.module.result(op),
               c.module.attr(op, attr_slot(VectorInterleave, "axis")).value());
}

void vector_deinterleave(VerifyContext& c, OpId op) {
  const ValueId even = c.module.result(op, 0);
  const ValueId odd = c.module.result(op, 1);
  if (c.module.type_of(even) != c.module.type_of(odd)) {
    return c.type_mismatch(op, result_label(c, op, 0), c.module.type_of(even),
                           result_label(c, op, 1), c.module.type_of(odd));
  }
  check_halves(c, op, even, c.module.operand(op, 0),
               c.module.attr(op, attr_slot(VectorDeinterleave, "axis")).value());
}

void vector_poison(VerifyContext& c, OpId op) {
  const bool empty = static_lanes(result_type(c, op)) == 0;
  const bool wants_empty = c.module.op(op).kind == VectorEmpty;
  if (empty == wants_empty) return;
  c.bad_result(op, wants_empty ? "a static vector without lanes" : "a vector that has lanes");
}

namespace {

// The exact value of every lane, where a constant or a splat of one gives it.
std::optional<int64_t> uniform_integer(const VerifyContext& c, OpId user, ValueId vector) {
  const OpId op = c.module.defining_op(vector);
  if (!op.valid() || !c.sound(op)) return std::nullopt;
  if (c.module.op(op).kind == VectorSplat) return c.constant_at(user, c.module.operand(op, 0));
  if (c.module.op(op).kind != VectorConstant) return std::nullopt;
  const Attr& literal = c.module.attr(op, attr_slot(VectorConstant, "value"));
  const bool integer = literal.kind == AttrKind::Integer;
  return integer && c.always_runs(user) ? std::optional(literal.value()) : std::nullopt;
}

}  // namespace

void vector_table_lookup(VerifyContext& c, OpId op) {
  const ValueId table = c.module.operand(op, operand_slot(VectorTableLookup, "t"));
  const ValueId index = c.module.operand(op, operand_slot(VectorTableLookup, "i"));
  const Type& type = type_of(c, table);
  if (type.rank() != 1) return bad_operand(c, op, table, "a vector of rank 1");
  check_elements(c, op, result_type(c, op), type);
  check_same_shape(c, op, result_label(c, op), result_type(c, op), operand_label(c, index),
                   type_of(c, index));
  const auto outside = [&](int64_t at) {
    return at < 0 || (!type.dims[0].is_dynamic() && at >= type.dims[0].extent());
  };
  if (const auto all = uniform_integer(c, op, index)) {
    if (outside(*all)) out_of_bounds(c, op, std::to_string(*all), type.dims[0], 0);
    return;
  }
  const OpId source = c.module.defining_op(index);
  if (!source.valid() || !c.sound(source)) return;
  if (c.module.op(source).kind != VectorFromElements) return;
  for (const ValueId element : c.module.operands(source)) {
    const auto at = c.constant_at(op, element);
    if (at && outside(*at)) return out_of_bounds(c, op, std::to_string(*at), type.dims[0], 0);
  }
}

}  // namespace loom::verify
