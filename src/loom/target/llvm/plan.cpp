#include "loom/target/llvm/plan.h"

#include <algorithm>
#include <bit>

#include "loom/base/check.h"
#include "loom/dialect/encoding_info.h"
#include "loom/dialect/eval.h"
#include "loom/dialect/op_info.h"
#include "loom/ir/walk.h"
#include "loom/target/llvm/exact.h"
#include "loom/target/llvm/llvm_types.h"
#include "loom/target/llvm/meetings.h"
#include "loom/target/llvm/op_checks.h"
#include "loom/target/llvm/view_layout.h"

namespace loom {
namespace {

using enum OpKind;

bool is_lowerable(const Module& module, const Type& type) {
  switch (type.kind) {
    case TypeKind::Scalar:
    case TypeKind::Buffer:
    case TypeKind::AsyncToken:
    case TypeKind::AsyncGroup:
      return true;
    case TypeKind::View:
      return view_layout(module, type) != ViewLayout::Other;
    case TypeKind::Vector: {
      const auto lanes = static_lanes(type);
      return !type.encoding.valid() && lanes && *lanes <= kMaxVectorLanes;
    }
    default:
      return false;
  }
}

// Which operations lowering knows, apart from what their types and attributes add.
bool is_lowerable(OpKind kind) {
  const OpInfo& info = op_info(kind);
  for (const std::string_view dialect :
       {"index", "scalar", "vector", "view", "encoding", "sanitizer"}) {
    if (info.dialect == dialect) return true;
  }
  switch (kind) {
    case BufferAlloca:
    case BufferView:
    case BufferAssumeNoalias:
    case BufferAssumeAlignment:
    case BufferAssumeMemorySpace:
    case BufferAssumeSameRoot:
    case BufferPack:
    case BufferLength:
    case ScfFor:
    case ScfIf:
    case ScfSelect:
    case ScfYield:
    case ScfSwitch:
    case ScfLookup:
    case ScfWhile:
    case ScfCondition:
    case FuncCall:
    case FuncReturn:
    case ConfigGet:
    case KernelReturn:
    case KernelExit:
    case KernelAssert:
    case KernelAsyncCopy:
    case KernelAsyncCopyMask:
    case KernelAsyncGather:
    case KernelAsyncGatherMask:
    case KernelAsyncGroup:
    case KernelAsyncWait:
    case TargetSubgroupSize:
      return true;
    default:
      return info.has(trait::KernelQuery) || info.has(trait::Convergent);
  }
}

MemorySpace space_of(const Module& module, OpId alloca) {
  return static_cast<MemorySpace>(module.attr(alloca, attr_slot(BufferAlloca, "space")).bits);
}

bool is_storage(const Module& module, ValueId value) {
  const TypeKind kind = module.types[module.type_of(value)].kind;
  return kind == TypeKind::Buffer || kind == TypeKind::View;
}

bool carries_storage(const Module& module, OpId loop) {
  for (unsigned i = 0; i < module.op(loop).result_count; ++i) {
    if (is_storage(module, module.result(loop, i))) return true;
  }
  return false;
}

class Planner {
 public:
  Planner(const Module& module, const LoweringTarget& target, Diagnostics& diagnostics)
      : module_(module),
        target_(target),
        diagnostics_(diagnostics),
        state_(module.op_count()),
        checks_(module) {}

  std::optional<LoweringPlan> run(std::span<const OpId> kernels);

 private:
  // What is known about a function whose callees are all known.
  struct Body {
    bool scanned = false;
    bool on_path = false;  // a caller of the function that is scanned now
    bool out_of_line = false;
    uint64_t ops = 0;            // after inlining
    unsigned depth = 0;          // after inlining
    uint64_t private_bytes = 0;  // of all storage
    uint64_t shared_bytes = 0;   // of these, in workgroup memory
  };
  // One function that is scanned; calls are followed with an explicit stack.
  struct Scan {
    OpId root;
    RegionId region;
    OpId next;
    unsigned depth = 0;
  };

  bool reject(OpId op, std::string_view detail = {});
  bool check_op(OpId op);
  bool check_types(OpId op);
  bool check_alloca(OpId op);
  bool check_extents(OpId kernel, RegionId region);
  bool plan_meetings(KernelPlan& kernel);
  uint64_t slot_bytes(const GroupPlan& group) const;
  bool scan(OpId root);
  bool step(std::vector<Scan>& stack);
  bool enter(std::vector<Scan>& stack, OpId root);
  bool call(std::vector<Scan>& stack, OpId op, bool& entered);
  bool grow(Body& body, OpId op, uint64_t ops, unsigned depth, uint64_t bytes);
  void advance(Scan& scan) const;

  const Module& module_;
  const LoweringTarget& target_;
  Diagnostics& diagnostics_;
  std::vector<uint8_t> state_;  // by OpId: 1 when the call was followed already
  std::unordered_map<uint32_t, Body> bodies_;
  OpChecks checks_;
  ExactValues exact_;
  LoweringPlan plan_;
};

bool Planner::reject(OpId op, std::string_view detail) {
  std::string where = "on ";
  where += target_.name;
  if (!detail.empty()) {
    where += ' ';
    where += detail;
  }
  diagnostics_.emit(Diag::LoweringNotSupported, module_.location(op),
                    {{"op", std::string(op_info(module_.op(op).kind).name)}, {"where", where}});
  return false;
}

bool Planner::check_types(OpId op) {
  const OpInfo& info = op_info(module_.op(op).kind);
  const bool takes_encodings =
      info.dialect == "encoding" || info.kind == VectorDecode || info.kind == VectorEncode;
  const auto lowerable = [&](ValueId value) {
    const Type& type = module_.types[module_.type_of(value)];
    return is_lowerable(module_, type) || (takes_encodings && is_encoding_type(type.kind));
  };
  const auto operands = module_.operands(op);
  bool good = std::all_of(operands.begin(), operands.end(), lowerable);
  for (unsigned i = 0; i < module_.op(op).result_count; ++i) {
    good = good && lowerable(module_.result(op, i));
  }
  return good || reject(op, "on values of these types");
}

bool Planner::check_alloca(OpId op) {
  const MemorySpace space = space_of(module_, op);
  if (space != MemorySpace::Private && space != MemorySpace::Workgroup) {
    return reject(op, "outside private and workgroup memory");
  }
  const auto bytes = exact_.upper_bound(module_, module_.operand(op, 0));
  if (!bytes) return reject(op, "with a size that has no known bound");
  if (*bytes > kMaxPrivateBytes) return reject(op, "with more than 1 MiB");
  if (module_.attr(op, attr_slot(BufferAlloca, "align")).value() > kMaxPrivateAlignment) {
    return reject(op, "with an alignment above 4096");
  }
  for (OpId loop = parent_op(module_, op); loop.valid(); loop = parent_op(module_, loop)) {
    const bool is_loop = module_.op(loop).kind == ScfFor || module_.op(loop).kind == ScfWhile;
    if (is_loop && carries_storage(module_, loop)) {
      return reject(op, "inside a loop that carries a buffer or a view");
    }
    if (module_.op(loop).kind != FuncDef) continue;
    for (const ValueId result :
         module_.args(module_.op_region(loop, region_slot(FuncDef, "results")))) {
      if (is_storage(module_, result)) {
        return reject(op, "inside a function that returns a buffer or a view");
      }
    }
  }
  plan_.alloca_bytes[op.index()] = *bytes;
  return true;
}

bool Planner::check_op(OpId op) {
  const OpKind kind = module_.op(op).kind;
  if (!is_lowerable(kind)) return reject(op);
  if (!check_types(op)) return false;
  exact_.visit(module_, op);
  if (kind == BufferAlloca) return check_alloca(op);
  if (kind == ConfigGet && !config_value(module_, op)) {
    diagnostics_.emit(Diag::ConfigUnresolved, module_.location(op),
                      {{"key", std::string(symbol_ref(module_, op, attr_slot(ConfigGet, "key")))}});
    return false;
  }
  const std::string_view refusal = checks_.check(op, exact_, plan_);
  return refusal.empty() || reject(op, refusal);
}

// A kernel's caller passes addresses only, so an extent that a view type alone names is unknown.
bool Planner::check_extents(OpId kernel, RegionId region) {
  const std::vector<ValueId> extents = introduced_extents(module_, region);
  if (extents.empty()) return true;
  const auto unknown = [&](ValueId value) {
    return std::find(extents.begin(), extents.end(), value) != extents.end();
  };
  const auto strided_by_unknown = [&](ValueId value) {
    const Type& type = module_.types[module_.type_of(value)];
    for (size_t axis = 1; axis < type.rank(); ++axis) {
      if (type.dims[axis].is_dynamic() && unknown(type.dims[axis].value())) return true;
    }
    return false;
  };
  bool needed = false;
  for (const ValueId arg : module_.args(region)) needed = needed || strided_by_unknown(arg);
  for_each_nested(module_, kernel, [&](OpId op) {
    const auto operands = module_.operands(op);
    needed = needed || std::any_of(operands.begin(), operands.end(), unknown);
    for (unsigned i = 0; i < module_.op(op).result_count; ++i) {
      needed = needed || strided_by_unknown(module_.result(op, i));
    }
  });
  return !needed || reject(kernel, "with an extent that is not a launch argument");
}

bool Planner::enter(std::vector<Scan>& stack, OpId root) {
  const bool is_kernel = module_.op(root).kind == KernelDef;
  const RegionId region = module_.op_region(
      root, is_kernel ? region_slot(KernelDef, "body") : region_slot(FuncDef, "body"));
  LOOM_CHECK(!module_.region(region).deferred, "the body is still encoded");
  bodies_[root.index()].on_path = true;
  for (const ValueId arg : module_.args(region)) {
    if (!is_lowerable(module_, module_.types[module_.type_of(arg)])) {
      return reject(root, "with arguments of these types");
    }
  }
  if (is_kernel && !check_extents(root, region)) return false;
  exact_.assume_contract(module_, where_predicates(module_, root), module_.args(region));
  stack.push_back({root, region, module_.region(region).first, 0});
  return true;
}

bool Planner::grow(Body& body, OpId op, uint64_t ops, unsigned depth, uint64_t bytes) {
  body.ops += ops;
  body.depth = std::max(body.depth, depth);
  body.private_bytes += bytes;
  if (body.ops > kMaxInlinedOps) return reject(op, "where inlining exceeds 2000000 operations");
  if (body.depth > kMaxNesting) return reject(op, "nested more than 256 levels deep");
  if (body.private_bytes > kMaxPrivateBytes) return reject(op, "with more than 1 MiB in all");
  return true;
}

// Follows a call whose callee is not scanned yet; otherwise accounts for it.
bool Planner::call(std::vector<Scan>& stack, OpId op, bool& entered) {
  const std::string_view name = symbol_ref(module_, op, attr_slot(FuncCall, "callee"));
  const OpId callee = module_.symbol(name);
  LOOM_CHECK(callee.valid(), "call of an unknown symbol");
  if (module_.op(callee).kind != FuncDef) return reject(op, "of a function without a body");
  const bool inlined = is_inlined_call(module_, op);
  Body& body = bodies_[callee.index()];
  if (body.on_path && inlined) {
    diagnostics_.emit(Diag::LoweringInline, module_.location(op),
                      {{"function", std::string(name)}, {"detail", "it calls itself"}});
    return false;
  }
  if (!body.scanned && !body.on_path) {
    entered = true;
    return enter(stack, callee);
  }
  if (!inlined && !body.out_of_line) {
    body.out_of_line = true;
    plan_.functions.push_back(callee);
  }
  const Body added = inlined ? body : Body{};
  bodies_[stack.back().root.index()].shared_bytes += added.shared_bytes;
  return grow(bodies_[stack.back().root.index()], op, added.ops + 1,
              stack.back().depth + (inlined ? added.depth + 1 : 0), added.private_bytes);
}

// Moves to the operation after `scan.next`, which has no regions left to enter.
void Planner::advance(Scan& scan) const {
  while (scan.next.valid()) {
    const OpId sibling = module_.op(scan.next).next;
    const RegionId region = module_.op(scan.next).parent;
    if (sibling.valid()) {
      scan.next = sibling;
      return;
    }
    if (region == scan.region) {
      scan.next = OpId();
      return;
    }
    // The next region of the parent, or what follows the parent.
    const OpId parent = module_.region(region).parent;
    scan.next = OpId();
    for (unsigned i = region.index() - module_.op(parent).region_begin + 1;
         i < module_.op(parent).region_count && !scan.next.valid(); ++i) {
      scan.next = module_.region(module_.op_region(parent, i)).first;
    }
    if (scan.next.valid()) return;
    --scan.depth;
    scan.next = parent;
  }
}

bool Planner::step(std::vector<Scan>& stack) {
  Scan& scan = stack.back();
  if (!scan.next.valid()) {
    Body& body = bodies_[scan.root.index()];
    body.scanned = true;
    body.on_path = false;
    plan_.largest_body = std::max(plan_.largest_body, body.ops);
    stack.pop_back();
    return true;
  }
  const OpId op = scan.next;
  if (module_.op(op).kind == FuncCall) {
    bool entered = false;
    if (state_[op.index()] == 0) {
      state_[op.index()] = 1;
      if (!check_op(op)) return false;
    }
    if (!call(stack, op, entered)) return false;
    if (!entered) advance(stack.back());
    return true;
  }
  if (!check_op(op)) return false;
  const auto bytes = plan_.alloca_bytes.find(op.index());
  if (!grow(bodies_[scan.root.index()], op, 1, scan.depth + (module_.op(op).region_count != 0),
            bytes == plan_.alloca_bytes.end() ? 0 : bytes->second)) {
    return false;
  }
  if (bytes != plan_.alloca_bytes.end() && space_of(module_, op) == MemorySpace::Workgroup) {
    bodies_[scan.root.index()].shared_bytes += bytes->second;
  }
  const OpId nested = first_nested(module_, op);
  if (nested.valid()) {
    ++scan.depth;
    scan.next = nested;
  } else {
    advance(scan);
  }
  return true;
}

bool Planner::scan(OpId root) {
  std::vector<Scan> stack;
  if (!enter(stack, root)) return false;
  while (!stack.empty()) {
    if (!step(stack)) return false;
  }
  return true;
}

// Workitems that meet run part by part, which takes room for all of them.
bool Planner::plan_meetings(KernelPlan& kernel) {
  const auto items = kernel.items();
  if (items == 1u) return true;
  GroupRefusal refusal;
  const auto fits = [&] {
    return *items * (slot_bytes(*kernel.group) + kernel.private_bytes) + kernel.workgroup_bytes <=
           kMaxPrivateBytes;
  };
  if (!workitems_meet(module_, kernel.kernel)) {
    bool exits = false;
    for_each_nested(module_, kernel.kernel,
                    [&](OpId op) { exits = exits || module_.op(op).kind == KernelExit; });
    if (!items || *items > kMaxMeetingItems || exits ||
        !has_loops_in_step(module_, kernel.kernel, kernel.size)) {
      kernel.guard = find_guard(module_, kernel.kernel, kernel.size);
      return true;
    }
    kernel.group = plan_group(module_, kernel.kernel, kernel.size, refusal);
    if (kernel.group && !fits()) kernel.group.reset();
    return true;
  }
  if (!items) return reject(kernel.kernel, "with a barrier and a workgroup size that is not exact");
  if (*items > kMaxMeetingItems) {
    return reject(kernel.kernel, "with a barrier and more than 1024 workitems in a workgroup");
  }
  kernel.group = plan_group(module_, kernel.kernel, kernel.size, refusal);
  if (!kernel.group) return reject(refusal.op, refusal.detail);
  return fits() || reject(kernel.kernel, "with more than 1 MiB of values across its barriers");
}

// At most what the slots of one workitem take.
uint64_t Planner::slot_bytes(const GroupPlan& group) const {
  uint64_t bytes = 0;
  for (const ValueId value : group.slot_order) {
    const Type& type = module_.types[module_.type_of(value)];
    const uint64_t lanes = static_lanes(type).value_or(1 + type.rank());
    bytes += std::bit_ceil(std::max<uint64_t>(lanes, 1)) * 8;
  }
  return bytes;
}

std::optional<LoweringPlan> Planner::run(std::span<const OpId> kernels) {
  for (const OpId kernel : kernels) {
    LOOM_CHECK(module_.op(kernel).kind == KernelDef, "not a kernel");
    if (!scan(kernel)) return std::nullopt;
    const Body& body = bodies_[kernel.index()];
    plan_.kernels.push_back({kernel, exact_workgroup_size(module_, kernel), std::nullopt,
                             std::nullopt, subgroup_lanes(module_, kernel),
                             body.private_bytes - body.shared_bytes, body.shared_bytes});
    if (!plan_meetings(plan_.kernels.back())) return std::nullopt;
  }
  return std::move(plan_);
}

}  // namespace

std::optional<LoweringPlan> plan_lowering(const Module& module, std::span<const OpId> kernels,
                                          const LoweringTarget& target, Diagnostics& diagnostics) {
  return Planner(module, target, diagnostics).run(kernels);
}

std::optional<uint64_t> KernelPlan::items() const {
  uint64_t product = 1;
  for (const auto& extent : size) {
    if (!extent || (*extent != 0 && product > UINT64_MAX / *extent)) return std::nullopt;
    product *= *extent;
  }
  return product;
}

bool is_inlined_call(const Module& module, OpId call) {
  const auto inlines = [&](OpId op, unsigned slot) {
    return op.valid() && module.has_attr(op, slot) &&
           static_cast<Inlining>(module.attr(op, slot).bits) == Inlining::Inline;
  };
  const OpId callee = module.symbol(symbol_ref(module, call, attr_slot(FuncCall, "callee")));
  return inlines(call, attr_slot(FuncCall, "inlining")) ||
         (callee.valid() && module.op(callee).kind == FuncDef &&
          inlines(callee, attr_slot(FuncDef, "inlining")));
}

std::vector<ValueId> introduced_extents(const Module& module, RegionId region) {
  std::vector<ValueId> extents;
  for (const ValueId arg : module.args(region)) {
    for (const Dim dim : module.types[module.type_of(arg)].dims) {
      if (!dim.is_dynamic()) continue;
      const Value& value = module.value(dim.value());
      if (value.kind != ValueKind::Extent || value.owner != region.index()) continue;
      if (std::find(extents.begin(), extents.end(), dim.value()) == extents.end()) {
        extents.push_back(dim.value());
      }
    }
  }
  return extents;
}

std::optional<ScalarValue> config_value(const Module& module, OpId get) {
  const OpId key = module.symbol(symbol_ref(module, get, attr_slot(ConfigGet, "key")));
  if (!key.valid() || module.op(key).kind != ConfigDef) return std::nullopt;
  const Type& type = module.types[module.type_of(module.result(get))];
  if (!type.is_scalar()) return std::nullopt;
  return from_literal(module.attr(key, attr_slot(ConfigDef, "value")), type.element);
}

}  // namespace loom
