#include "loom/target/llvm/fragment_plan.h"

#include <cmath>

#include "loom/dialect/op_info.h"
#include "loom/ir/walk.h"
#include "loom/target/llvm/llvm_types.h"

namespace loom {
namespace {

using enum OpKind;

struct Slots {
  unsigned blocks, rows, columns;
  int keys;  // attribute of the auxiliaries' keys, or -1
};

std::optional<Slots> slots_of(OpKind kind) {
  switch (kind) {
    case VectorFragment:
      return Slots{operand_slot(VectorFragment, "blocks"), operand_slot(VectorFragment, "rows"),
                   operand_slot(VectorFragment, "cols"),
                   static_cast<int>(attr_slot(VectorFragment, "keys"))};
    case VectorFragmentLoad:
      return Slots{operand_slot(VectorFragmentLoad, "blocks"),
                   operand_slot(VectorFragmentLoad, "rows"),
                   operand_slot(VectorFragmentLoad, "cols"),
                   static_cast<int>(attr_slot(VectorFragmentLoad, "keys"))};
    case VectorFragmentStore:
      return Slots{operand_slot(VectorFragmentStore, "blocks"),
                   operand_slot(VectorFragmentStore, "rows"),
                   operand_slot(VectorFragmentStore, "cols"), -1};
    case VectorFragmentRepack:
      return Slots{operand_slot(VectorFragmentRepack, "blocks"),
                   operand_slot(VectorFragmentRepack, "rows"),
                   operand_slot(VectorFragmentRepack, "cols"), -1};
    default:
      return std::nullopt;
  }
}

uint64_t lanes_of(const Module& module, ValueId value) {
  return static_lanes(module.types[module.type_of(value)]).value_or(0);
}

// Facts travel with values through loops and choices; any operation that computes drops them.
bool may_carry_facts(const Module& module, ValueId value) {
  const OpId op = module.defining_op(value);
  if (!op.valid() || module.op(op).region_count != 0) return true;
  const OpKind kind = module.op(op).kind;
  return kind == FuncCall || kind == ScfSelect || kind == ScfLookup;
}

}  // namespace

bool states_blocks(const Module& module) {
  bool found = false;
  for_each_op(module, module.body(), [&](OpId symbol) {
    for_each_nested(module, symbol, [&](OpId op) {
      const auto slots = slots_of(module.op(op).kind);
      found = found || (slots && !operand_group(module, op, slots->blocks).empty());
    });
  });
  return found;
}

std::optional<FragmentExtents> fragment_extents(const Module& module, const ExactValues& exact,
                                                OpId op) {
  const auto slots = slots_of(module.op(op).kind);
  if (!slots) return std::nullopt;
  if (slots->keys >= 0 && module.has_attr(op, static_cast<unsigned>(slots->keys))) {
    return std::nullopt;
  }
  FragmentExtents extents;
  const auto take = [&](unsigned slot, uint64_t& into) {
    const auto group = operand_group(module, op, slot);
    if (group.empty()) return true;
    const auto value = exact.exact(group[0]);
    into = value ? value->bits : 0;
    return into != 0 && into <= kMaxFragmentExtent;
  };
  if (!take(slots->blocks, extents.blocks) || !take(slots->rows, extents.rows) ||
      !take(slots->columns, extents.columns)) {
    return std::nullopt;
  }
  const ValueId vector =
      module.op(op).kind == VectorFragmentLoad ? module.result(op) : module.operand(op, 0);
  if (lanes_of(module, vector) != extents.elements()) return std::nullopt;
  return extents;
}

std::optional<ProductExtents> product_extents(const Module& module, const ExactValues& exact,
                                              OpId mma, bool in_blocks) {
  const ValueId factors[2] = {module.operand(mma, 0), module.operand(mma, 1)};
  std::optional<FragmentExtents> known[2];
  bool carried = false;
  for (unsigned i = 0; i < 2; ++i) {
    const OpId op = module.defining_op(factors[i]);
    if (op.valid() && slots_of(module.op(op).kind)) {
      known[i] = fragment_extents(module, exact, op);
      if (!known[i]) return std::nullopt;
    }
    carried = carried || (!known[i] && may_carry_facts(module, factors[i]));
  }
  const uint64_t a = lanes_of(module, factors[0]);
  const uint64_t b = lanes_of(module, factors[1]);
  const uint64_t c = lanes_of(module, module.operand(mma, 2));
  ProductExtents product;
  if (known[0] && known[1]) {
    if (known[0]->columns != known[1]->rows || known[0]->blocks != known[1]->blocks) {
      return std::nullopt;
    }
    product = {known[0]->blocks, known[0]->rows, known[1]->columns, known[0]->columns};
  } else {
    if (a == 0 || b == 0 || c == 0 || a * c % b != 0) return std::nullopt;
    if (carried && in_blocks) return std::nullopt;
    const uint64_t square = a * c / b;
    product.m = static_cast<uint64_t>(std::llround(std::sqrt(static_cast<double>(square))));
    if (product.m == 0 || product.m * product.m != square) return std::nullopt;
    product.n = c / product.m;
    product.k = a / product.m;
  }
  const bool fits = product.blocks * product.m * product.k == a &&
                    product.blocks * product.k * product.n == b &&
                    product.blocks * product.m * product.n == c;
  return fits ? std::optional(product) : std::nullopt;
}

}  // namespace loom
