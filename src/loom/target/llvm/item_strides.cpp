#include "loom/target/llvm/item_strides.h"

#include <algorithm>

#include "loom/dialect/op_info.h"
#include "loom/ir/walk.h"
#include "loom/target/llvm/plan.h"

namespace loom {
namespace {

using enum OpKind;

constexpr int64_t kMostStride = int64_t{1} << 31;

std::optional<int64_t> small(int64_t stride) {
  return stride < kMostStride && stride > -kMostStride ? std::optional(stride) : std::nullopt;
}

}  // namespace

ItemStrides::ItemStrides(const Module& module, OpId kernel,
                         const std::array<std::optional<uint64_t>, 3>& workgroup_size)
    : module_(module), size_(workgroup_size) {
  for (const ValueId arg : module.args(module.op_region(kernel, region_slot(KernelDef, "body")))) {
    set(arg, 0);
  }
  for_each_nested(module, kernel, [&](OpId op) { visit(op); });
}

std::optional<int64_t> ItemStrides::of(ValueId value) const {
  const auto found = strides_.find(value.index());
  return found == strides_.end() ? std::nullopt : std::optional(found->second);
}

void ItemStrides::set(ValueId value, std::optional<int64_t> stride) {
  if (stride) strides_.insert_or_assign(value.index(), *stride);
}

void ItemStrides::visit(OpId op) {
  exact_.visit(module_, op);
  const OpInfo& info = op_info(module_.op(op).kind);
  const auto operands = module_.operands(op);
  const auto stride = [&](unsigned i) { return of(operands[i]); };
  if (info.kind == ScfFor) {
    const ValueId low = operand_group(module_, op, operand_slot(ScfFor, "lo"))[0];
    return set(module_.args(module_.op_region(op, region_slot(ScfFor, "body")))[0], of(low));
  }
  if (module_.op(op).region_count != 0 || module_.op(op).result_count == 0) return;
  const bool all_same =
      std::ranges::all_of(operands, [&](ValueId value) { return is_same(value); });
  if (info.effect == Effect::Pure && !info.has(trait::Convergent) &&
      !info.has(trait::KernelQuery) && all_same) {
    for (unsigned i = 0; i < module_.op(op).result_count; ++i) set(module_.result(op, i), 0);
    return;
  }
  const ValueId result = module_.result(op);
  const auto product = [&](unsigned a, unsigned b) -> std::optional<int64_t> {
    const auto one = stride(a);
    const auto factor = exact_.exact(operands[b]);
    if (!one || !factor) return std::nullopt;
    const int64_t by = as_signed(*factor);
    return small(by) ? small(*one * by) : std::nullopt;
  };
  const auto either_product = [&] {
    const auto first = product(0, 1);
    return first ? first : product(1, 0);
  };
  switch (info.kind) {
    case KernelWorkitemId:
    case KernelWorkitemDispatchId: {
      static_assert(attr_slot(KernelWorkitemId, "axis") ==
                    attr_slot(KernelWorkitemDispatchId, "axis"));
      const auto axis = module_.attr(op, attr_slot(KernelWorkitemId, "axis")).bits;
      // Along the other axes only a size of 1 makes it the same for all workitems.
      if (axis == 0 || size_[axis] == 1u) set(result, axis == 0 ? 1 : 0);
      return;
    }
    case KernelWorkgroupId:
    case KernelWorkgroupSize:
    case KernelWorkgroupCount:
    case KernelWorkgroupReduce:
    case KernelWorkgroupVoteAny:
    case KernelWorkgroupVoteAll:
    case KernelWorkgroupVoteCount:
      return set(result, 0);
    case IndexAdd:
    case IndexSub: {
      if (!stride(0) || !stride(1)) return;
      return set(result,
                 small(info.kind == IndexAdd ? *stride(0) + *stride(1) : *stride(0) - *stride(1)));
    }
    case IndexMul:
    case IndexScale:
      return set(result, either_product());
    case IndexMadd: {
      const auto scaled = either_product();
      if (scaled && stride(2)) set(result, small(*scaled + *stride(2)));
      return;
    }
    case IndexAssume:
      for (unsigned i = 0; i < module_.op(op).result_count; ++i) {
        set(module_.result(op, i), stride(i));
      }
      return;
    case IndexCast:
      if (is_address(module_.types[module_.type_of(operands[0])].element)) set(result, stride(0));
      return;
    default:
      return;
  }
}

// Neighbours touch neighbours, or all touch the same.
bool ItemStrides::is_neighbourly(OpId access, bool& moves) const {
  const bool loads = module_.op(access).kind == ViewLoad;
  const auto group = [&](unsigned of_load, unsigned of_store) {
    return operand_group(module_, access, loads ? of_load : of_store);
  };
  const auto views = group(operand_slot(ViewLoad, "w"), operand_slot(ViewStore, "w"));
  const auto indices = group(operand_slot(ViewLoad, "index"), operand_slot(ViewStore, "index"));
  const auto fixed = module_
                         .attr(access, loads ? attr_slot(ViewLoad, "static_index")
                                             : attr_slot(ViewStore, "static_index"))
                         .ints;
  if (!is_same(views[0])) return false;
  for (size_t i = 0; i < indices.size(); ++i) {
    const auto stride = of(indices[i]);
    const bool is_last = i + 1 == indices.size() && !fixed.empty() && fixed.back() == kDynamicIndex;
    if (!stride || (*stride != 0 && !(is_last && *stride == 1))) return false;
    moves = moves || *stride == 1;
  }
  return true;
}

bool ItemStrides::is_plain(OpId op) const {
  const OpInfo& info = op_info(module_.op(op).kind);
  const auto is_scalar = [&](ValueId value) {
    return module_.types[module_.type_of(value)].is_scalar();
  };
  switch (info.kind) {
    case ViewLoad:
    case ViewStore:
      return true;
    case ScfFor:
    case ScfIf:
    case ScfYield:
    case ScfSelect:
      break;
    case FuncCall:
      if (!is_inlined_call(module_, op)) return false;
      break;
    case BufferView:
    case ViewSubview:
    case ViewRefine:
      return true;
    default:
      if (info.effect != Effect::Pure || module_.op(op).region_count != 0) return false;
  }
  for (unsigned i = 0; i < module_.op(op).result_count; ++i) {
    if (!is_scalar(module_.result(op, i))) return false;
  }
  return std::ranges::all_of(module_.operands(op), is_scalar);
}

bool ItemStrides::gains_in_step(OpId loop) const {
  const auto bound = [&](unsigned slot) { return of(operand_group(module_, loop, slot)[0]); };
  const auto lag = bound(operand_slot(ScfFor, "lo"));
  if (!lag || *lag < 0 || bound(operand_slot(ScfFor, "hi")) != 0 ||
      bound(operand_slot(ScfFor, "step")) != 0 || !is_plain(loop)) {
    return false;
  }
  const ValueId induction = module_.args(module_.op_region(loop, region_slot(ScfFor, "body")))[0];
  bool good = true;
  bool moves = false;
  for_each_nested(module_, loop, [&](OpId op) {
    const OpKind kind = module_.op(op).kind;
    good = good && is_plain(op);
    if (good && (kind == ViewLoad || kind == ViewStore)) good = is_neighbourly(op, moves);
    // What starts or goes on with the loop's own number differs between workitems.
    if (*lag != 0 && (kind == ScfFor || kind == ScfYield)) {
      good =
          good && std::ranges::find(module_.operands(op), induction) == module_.operands(op).end();
    }
  });
  return good && moves;
}

}  // namespace loom
