#include "loom/target/llvm/item_strides.h"

#include <algorithm>
#include <unordered_set>

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

ItemStrides::ItemStrides(const Module& module, OpId kernel, const WorkgroupSize& workgroup_size)
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

void ItemStrides::set(ValueId value, std::optional<int64_t> stride, bool varies) {
  if (!stride) return;
  strides_.insert_or_assign(value.index(), *stride);
  if (varies) varying_.insert(value.index());
}

void ItemStrides::visit(OpId op) {
  exact_.visit(module_, op);
  const OpKind kind = module_.op(op).kind;
  if (kind == ScfFor) {
    const ValueId low = operand_group(module_, op, operand_slot(ScfFor, "lo"))[0];
    return set(module_.args(module_.op_region(op, region_slot(ScfFor, "body")))[0], of(low),
               varies(low));
  }
  if (module_.op(op).region_count != 0 || module_.op(op).result_count == 0) return;
  const auto operands = module_.operands(op);
  if (kind == IndexAssume) {
    for (unsigned i = 0; i < module_.op(op).result_count; ++i) {
      set(module_.result(op, i), of(operands[i]), varies(operands[i]));
    }
    return;
  }
  const auto stride = stride_of(op);
  bool varying = std::ranges::any_of(operands, [&](ValueId value) { return varies(value); });
  if (kind == KernelWorkitemId || kind == KernelWorkitemDispatchId) {
    const auto axis = module_.attr(op, attr_slot(KernelWorkitemId, "axis")).bits;
    varying = axis != 0 && size_[axis] != 1u;
  }
  for (unsigned i = 0; i < module_.op(op).result_count; ++i) {
    set(module_.result(op, i), stride, varying);
  }
}

// Of its results.
std::optional<int64_t> ItemStrides::stride_of(OpId op) const {
  const OpInfo& info = op_info(module_.op(op).kind);
  const auto operands = module_.operands(op);
  const auto stride = [&](unsigned i) { return of(operands[i]); };
  if (info.effect == Effect::Pure && !info.has(trait::Convergent) &&
      !info.has(trait::KernelQuery) &&
      std::ranges::all_of(operands, [&](ValueId value) { return is_same_along_x(value); })) {
    return 0;
  }
  const auto product = [&](unsigned a, unsigned b) -> std::optional<int64_t> {
    const auto one = stride(a);
    const auto factor = exact_.exact(operands[b]);
    if (!one || !factor) return std::nullopt;
    const auto by = small(as_signed(*factor));
    return by ? small(*one * *by) : std::nullopt;
  };
  const auto either_product = [&] {
    const auto first = product(0, 1);
    return first ? first : product(1, 0);
  };
  switch (info.kind) {
    case KernelWorkitemId:
    case KernelWorkitemDispatchId:
      static_assert(attr_slot(KernelWorkitemId, "axis") ==
                    attr_slot(KernelWorkitemDispatchId, "axis"));
      return module_.attr(op, attr_slot(KernelWorkitemId, "axis")).bits == 0 ? 1 : 0;
    case KernelWorkgroupId:
    case KernelWorkgroupSize:
    case KernelWorkgroupCount:
    case KernelWorkgroupReduce:
    case KernelWorkgroupVoteAny:
    case KernelWorkgroupVoteAll:
    case KernelWorkgroupVoteCount:
      return 0;
    case IndexAdd:
    case IndexSub:
      if (!stride(0) || !stride(1)) return std::nullopt;
      return small(info.kind == IndexAdd ? *stride(0) + *stride(1) : *stride(0) - *stride(1));
    case IndexMul:
    case IndexScale:
      return either_product();
    case IndexMadd: {
      const auto scaled = either_product();
      return scaled && stride(2) ? small(*scaled + *stride(2)) : std::nullopt;
    }
    case IndexCast:
      return is_address(module_.types[module_.type_of(operands[0])].element) ? stride(0)
                                                                             : std::nullopt;
    default:
      return std::nullopt;
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
  if (!is_same_along_x(views[0])) return false;
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
  const auto bound = [&](unsigned slot) { return operand_group(module_, loop, slot)[0]; };
  const ValueId low = bound(operand_slot(ScfFor, "lo"));
  const auto lag = of(low);
  if (!lag || *lag < 0 || varies(low) || !is_same(bound(operand_slot(ScfFor, "hi"))) ||
      !is_same(bound(operand_slot(ScfFor, "step"))) || !is_plain(loop)) {
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

namespace {

// The operations of `body` that `op` is computed from, itself at the end; nothing when one of them
// has effects or regions.
std::optional<std::vector<OpId>> slice(const Module& module, RegionId body, OpId op) {
  std::unordered_set<uint32_t> wanted = {op.index()};
  std::vector<OpId> before;
  for (OpId one = op; one.valid(); one = module.op(one).prev) before.push_back(one);
  std::vector<OpId> needs;
  for (const OpId one : before) {  // from the last to the first
    if (!wanted.contains(one.index())) continue;
    const OpInfo& info = op_info(module.op(one).kind);
    if (info.effect != Effect::Pure || module.op(one).region_count != 0) return std::nullopt;
    needs.push_back(one);
    for (const ValueId operand : module.operands(one)) {
      const OpId definition = module.defining_op(operand);
      if (definition.valid() && module.op(definition).parent == body) {
        wanted.insert(definition.index());
      }
    }
  }
  std::ranges::reverse(needs);
  return needs;
}

}  // namespace

std::optional<GroupGuard> find_guard(const Module& module, OpId kernel, const WorkgroupSize& size) {
  constexpr uint64_t kMostOps = 500;  // which are emitted twice
  if (size[0] == 1u || size[1] != 1u || size[2] != 1u) return std::nullopt;
  uint64_t ops = 0;
  bool simple = true;
  for_each_nested(module, kernel, [&](OpId op) {
    ++ops;
    const OpKind kind = module.op(op).kind;
    simple = simple && kind != BufferAlloca && kind != FuncCall && kind != KernelExit;
  });
  if (!simple || ops > kMostOps) return std::nullopt;
  const RegionId body = module.op_region(kernel, region_slot(KernelDef, "body"));
  const ItemStrides strides(module, kernel, size);
  std::optional<GroupGuard> found;
  for_each_op(module, body, [&](OpId op) {
    if (found || module.op(op).kind != ScfIf) return;
    const OpId condition = module.defining_op(module.operand(op, 0));
    if (!condition.valid() || module.op(condition).kind != IndexCmp) return;
    const auto sides = module.operands(condition);
    const auto stride = strides.of(sides[0]);
    const auto kind =
        static_cast<Compare>(module.attr(condition, attr_slot(IndexCmp, "predicate")).bits);
    const bool is_below = kind == Compare::Slt || kind == Compare::Sle || kind == Compare::Ult ||
                          kind == Compare::Ule;
    if (!is_below || !stride || *stride <= 0 || !strides.is_same(sides[1])) return;
    if (auto needs = slice(module, body, condition)) found = {condition, std::move(*needs)};
  });
  return found;
}

}  // namespace loom
