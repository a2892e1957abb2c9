// Rules of loads, stores, gathers, scatters and atomics. They name their operands alike: `w` the
// view, `index` the origin, `o` the offsets, `m` the mask, `p` the passthrough.
#include <fmt/core.h>

#include "loom/dialect/vector/rules.h"

namespace loom::verify {
namespace {

using enum OpKind;

// The first operand of the group with that name; invalid when the row has none.
ValueId named(const VerifyContext& c, OpId op, std::string_view name) {
  const OpInfo& info = op_info(c.module.op(op).kind);
  for (unsigned i = 0; i < info.operands.size(); ++i) {
    if (info.operands[i].name == name) return operand_group(c.module, op, i).front();
  }
  return {};
}

std::span<const ValueId> index_operands(const VerifyContext& c, OpId op) {
  const OpInfo& info = op_info(c.module.op(op).kind);
  unsigned slot = 0;
  while (info.operands[slot].name != "index") ++slot;
  return operand_group(c.module, op, slot);
}

std::span<const int64_t> index_places(const VerifyContext& c, OpId op) {
  const OpInfo& info = op_info(c.module.op(op).kind);
  unsigned slot = 0;
  while (info.attrs[slot].name != "static_index") ++slot;
  return c.module.attr(op, slot).ints;
}

// The vector that moves: an operand of a store, the result of a load.
ValueId moved_vector(const VerifyContext& c, OpId op) {
  for (const std::string_view name : {"v", "expected"}) {
    if (const ValueId value = named(c, op, name); value.valid()) return value;
  }
  return c.module.result(op);
}

void check_shape_of(VerifyContext& c, OpId op, ValueId value, ValueId vector) {
  if (!value.valid()) return;
  check_same_shape(c, op, c.name(value), type_of(c, value), c.name(vector), type_of(c, vector));
}

// The vector's axes are the trailing axes of the view.
void check_block(VerifyContext& c, OpId op, ValueId view, const Type& vector) {
  const size_t rank = type_of(c, view).rank();
  if (vector.rank() > rank) {
    return bad_shape(
        c, op,
        fmt::format("a vector of rank {} does not fit a view of rank {}", vector.rank(), rank));
  }
  std::vector<Dim> window(rank, Dim::fixed(1));
  for (size_t i = 0; i < vector.rank(); ++i) {
    window[rank - vector.rank() + i] = vector.dims[i];
  }
  check_view_indices(c, op, view, index_operands(c, op), index_places(c, op), window,
                     named(c, op, "m").valid());
}

}  // namespace

void vector_memory(VerifyContext& c, OpId op) {
  const ValueId view = named(c, op, "w");
  const ValueId vector = moved_vector(c, op);
  const ValueId offsets = named(c, op, "o");
  const Type& type = type_of(c, vector);
  check_same_element(c, op, std::string(scalar_name(type.element)), type.element,
                     type_of(c, view).element);
  if (!offsets.valid()) {
    check_block(c, op, view, type);
  } else if (type_of(c, view).rank() == 0) {
    bad_shape(c, op, "offsets need a view with at least one axis");
  } else {
    check_view_indices(c, op, view, index_operands(c, op), index_places(c, op), {});
    check_shape_of(c, op, offsets, vector);
  }
  check_shape_of(c, op, named(c, op, "m"), vector);
  for (const std::string_view name : {"p", "desired"}) {
    const ValueId other = named(c, op, name);
    if (!other.valid() || c.module.type_of(other) == c.module.type_of(vector)) continue;
    c.type_mismatch(op, operand_label(c, other), c.module.type_of(other), c.name(vector),
                    c.module.type_of(vector));
  }
  if (c.module.op(op).kind == VectorAtomicCmpXchg &&
      c.module.type_of(c.module.result(op)) != c.module.type_of(vector)) {
    c.type_mismatch(op, result_label(c, op), c.module.type_of(c.module.result(op)),
                    operand_label(c, vector), c.module.type_of(vector));
  }
  check_cache(c, op);
  check_atomic(c, op, vector);
}

void vector_fragment_memory(VerifyContext& c, OpId op) {
  const ValueId view = named(c, op, "w");
  const Type& type = type_of(c, view);
  // A row of the matrix lies along the last axis of the view; blocks have no stated place.
  std::vector<Dim> window;
  const bool is_load = c.module.op(op).kind == VectorFragmentLoad;
  const auto blocks = operand_group(c.module, op,
                                    is_load ? operand_slot(VectorFragmentLoad, "blocks")
                                            : operand_slot(VectorFragmentStore, "blocks"));
  if (type.rank() >= 2 && blocks.empty()) {
    const auto rows = c.constant(named(c, op, "rows"));
    const auto columns = c.constant(named(c, op, "cols"));
    window.assign(type.rank(), Dim::fixed(1));
    if (rows && *rows > 0) window[type.rank() - 2] = Dim::fixed(*rows);
    if (columns && *columns > 0) window[type.rank() - 1] = Dim::fixed(*columns);
  }
  check_view_indices(c, op, view, index_operands(c, op), index_places(c, op), window);
  check_cache(c, op);
  vector_fragment(c, op);
}

}  // namespace loom::verify
