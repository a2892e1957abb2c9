#include "loom/dialect/uniformity.h"

#include <algorithm>

#include "loom/dialect/op_info.h"
#include "loom/ir/walk.h"

namespace loom {
namespace {

using enum OpKind;

using Variance = Distribution;
constexpr Variance kClusterUniform = Distribution::Cluster;
constexpr Variance kWorkgroupUniform = Distribution::Workgroup;
constexpr Variance kSubgroupUniform = Distribution::Subgroup;
constexpr Variance kVarying = Distribution::Lane;

// A reduction of equal values depends on how many there are, unless combining two of them gives
// the same one.
bool counts_lanes(CombiningKind kind) {
  using enum CombiningKind;
  return kind == AddI || kind == AddF || kind == MulI || kind == MulF || kind == XorI;
}

bool has_clusters(const Module& module, OpId reduction) {
  return module.has_attr(reduction, attr_slot(KernelSubgroupReduce, "cluster_size"));
}

// Of an operation that asks which invocation runs it, or how many run it together: subgroups need
// not have the same number of lanes.
Variance variance_of_query(const Module& module, OpId op) {
  switch (module.op(op).kind) {
    case KernelWorkitemId:
    case KernelWorkitemDispatchId:
    case KernelSubgroupLaneId:
    case KernelSubgroupShuffle:
    case KernelSubgroupScan:
    case KernelWorkgroupScan:
    case KernelSubgroupMatchAny:
      return kVarying;
    case KernelSubgroupId:
    case KernelSubgroupActiveMask:
    case KernelSubgroupVoteBallot:
    case KernelSubgroupMatchAll:
      return kSubgroupUniform;
    case KernelSubgroupReduce: {
      const uint64_t kind = module.attr(op, attr_slot(KernelSubgroupReduce, "kind")).bits;
      if (!counts_lanes(static_cast<CombiningKind>(kind))) return kClusterUniform;
      return has_clusters(module, op) ? kVarying : kSubgroupUniform;
    }
    case KernelWorkgroupId:
      return kWorkgroupUniform;
    case BufferAlloca: {
      // Each invocation has its own private storage.
      const uint64_t space = module.attr(op, attr_slot(BufferAlloca, "space")).bits;
      return space == static_cast<uint64_t>(MemorySpace::Private) ? kVarying : kWorkgroupUniform;
    }
    default: {
      // An atomic gives each invocation the value that the one before it left.
      const bool exchanges =
          module.op(op).result_count != 0 && op_info(module.op(op).kind).effect == Effect::Write;
      return exchanges ? kVarying : kClusterUniform;
    }
  }
}

}  // namespace

// Variance flows from operands to results. A value rises at most twice, so a worklist ends in time
// linear in the uses.
class VarianceFlow {
 public:
  VarianceFlow(const Module& module, std::vector<Variance> functions)
      : module_(module),
        functions_(std::move(functions)),
        variance_(module.value_count()),
        first_edge_(module.value_count(), kNone) {}

  void add_body(OpId root) {
    for_each_nested(module_, root, [&](OpId op) { visit(op); });
  }
  void run() {
    while (!changed_.empty()) {
      const ValueId value = changed_.back();
      changed_.pop_back();
      for (uint32_t e = first_edge_[value.index()]; e != kNone; e = edges_[e].next) {
        raise(edges_[e].to,
              static_cast<Variance>(std::min(variance_[value.index()], edges_[e].limit)));
      }
    }
  }
  Variance of(ValueId value) const { return variance_[value.index()]; }

 private:
  static constexpr uint32_t kNone = ~0u;
  struct Edge {
    ValueId to;
    Variance limit;  // the most that flows along this edge
    uint32_t next;
  };

  void raise(ValueId value, Variance variance) {
    if (variance_[value.index()] >= variance) return;
    variance_[value.index()] = variance;
    changed_.push_back(value);
  }
  void raise_results(OpId op, Variance variance) {
    for (unsigned i = 0; i < module_.op(op).result_count; ++i) {
      raise(module_.result(op, i), variance);
    }
  }
  void flow(ValueId from, ValueId to, Variance limit = kVarying) {
    edges_.push_back({to, limit, first_edge_[from.index()]});
    first_edge_[from.index()] = static_cast<uint32_t>(edges_.size() - 1);
  }
  void flow_to_results(ValueId from, OpId op, Variance limit = kVarying) {
    for (unsigned i = 0; i < module_.op(op).result_count; ++i) {
      flow(from, module_.result(op, i), limit);
    }
  }

  void visit(OpId op);
  void visit_loop(OpId op);
  void visit_yield(OpId op);
  void visit_call(OpId op);

  const Module& module_;
  const std::vector<Variance> functions_;
  std::vector<Variance> variance_;    // by value
  std::vector<uint32_t> first_edge_;  // by value
  std::vector<Edge> edges_;
  std::vector<ValueId> changed_;
};

void VarianceFlow::visit(OpId op) {
  switch (module_.op(op).kind) {
    case ScfFor:
      return visit_loop(op);
    case ScfIf:
    case ScfSwitch:
      return flow_to_results(module_.operand(op, 0), op);
    case ScfWhile: {
      const auto args = module_.args(module_.op_region(op, 0));
      for (unsigned i = 0; i < args.size(); ++i) flow(module_.operand(op, i), args[i]);
      return;
    }
    case ScfCondition: {
      // Invocations leave the loop in different iterations when the condition varies.
      const OpId loop = module_.region(module_.op(op).parent).parent;
      const auto args = module_.args(module_.op_region(loop, 1));
      flow_to_results(module_.operand(op, 0), loop);
      for (unsigned i = 0; i < args.size(); ++i) {
        flow(module_.operand(op, i + 1), args[i]);
        flow(module_.operand(op, i + 1), module_.result(loop, i));
      }
      return;
    }
    case ViewAtomicRmw:
    case ViewAtomicCmpxchg:
    case ViewAtomicLoad:
      return raise(module_.result(op), kVarying);  // each invocation sees another moment
    case ScfYield:
      return visit_yield(op);
    case FuncCall:
      return visit_call(op);
    case KernelWorkgroupReduce:
    case KernelWorkgroupVoteAny:
    case KernelWorkgroupVoteAll:
    case KernelWorkgroupVoteCount:
      return flow_to_results(module_.operand(op, 0), op, kWorkgroupUniform);
    case KernelSubgroupReduce:
      raise_results(op, variance_of_query(module_, op));
      return flow_to_results(module_.operand(op, 0), op,
                             has_clusters(module_, op) ? kVarying : kSubgroupUniform);
    case KernelSubgroupBroadcast:
    case KernelSubgroupBroadcastFirst:
    case KernelSubgroupVoteAny:
    case KernelSubgroupVoteAll:
    case KernelSubgroupVoteBallot:
    case KernelSubgroupMatchAll:
      raise_results(op, variance_of_query(module_, op));
      return flow_to_results(module_.operand(op, 0), op, kSubgroupUniform);
    default:
      if (module_.op(op).result_count == 0) return;
      raise_results(op, variance_of_query(module_, op));
      for (const ValueId operand : module_.operands(op)) flow_to_results(operand, op);
  }
}

void VarianceFlow::visit_loop(OpId op) {
  const auto inits = operand_group(module_, op, operand_slot(ScfFor, "init"));
  const auto args = module_.args(module_.op_region(op, 0));
  // Invocations in the body are in the same iteration, so the end only decides who is there.
  flow(module_.operand(op, operand_slot(ScfFor, "lo")), args[0]);
  flow(module_.operand(op, operand_slot(ScfFor, "step")), args[0]);
  for (unsigned i = 0; i < inits.size(); ++i) {
    flow(inits[i], args[i + 1]);
    flow(args[i + 1], module_.result(op, i));
  }
  for (unsigned bound = 0; bound < 3; ++bound) flow_to_results(module_.operand(op, bound), op);
}

void VarianceFlow::visit_yield(OpId op) {
  const RegionId region = module_.op(op).parent;
  const OpId parent = module_.region(region).parent;
  const auto values = module_.operands(op);
  if (module_.op(parent).kind == ScfWhile) {
    const auto next = module_.args(module_.op_region(parent, 0));
    for (unsigned i = 0; i < values.size(); ++i) flow(values[i], next[i]);
    return;
  }
  for (unsigned i = 0; i < values.size(); ++i) {
    flow(values[i], module_.result(parent, i));
    if (module_.op(parent).kind == ScfFor) flow(values[i], module_.args(region)[i + 1]);
  }
}

// A function computes with its operands and with the ids that it asks for by itself.
void VarianceFlow::visit_call(OpId op) {
  for (const ValueId operand : module_.operands(op)) flow_to_results(operand, op);
  const OpId callee = module_.symbol(module_.attr(op, attr_slot(FuncCall, "callee")).string());
  raise_results(op, functions_[callee.index()]);
}

namespace {

// What each function, by OpId index, asks for: itself or through the functions it calls.
std::vector<Variance> variance_of_functions(const Module& module) {
  std::vector<Variance> variance(module.op_count());
  std::vector<std::pair<OpId, OpId>> calls;  // callee, caller
  std::vector<OpId> changed;
  const auto raise = [&](OpId function, Variance to) {
    if (variance[function.index()] >= to) return;
    variance[function.index()] = to;
    changed.push_back(function);
  };
  for_each_op(module, module.body(), [&](OpId function) {
    if (module.op(function).kind != FuncDef) return;
    for_each_nested(module, function, [&](OpId op) {
      raise(function, variance_of_query(module, op));
      if (module.op(op).kind != FuncCall) return;
      const OpId callee = module.symbol(module.attr(op, attr_slot(FuncCall, "callee")).string());
      calls.emplace_back(callee, function);
    });
  });
  std::ranges::sort(calls);
  while (!changed.empty()) {
    const OpId callee = changed.back();
    changed.pop_back();
    const auto first = std::ranges::lower_bound(calls, std::pair{callee, OpId(0u)});
    for (auto call = first; call != calls.end() && call->first == callee; ++call) {
      raise(call->second, variance[callee.index()]);
    }
  }
  return variance;
}

// Who reaches the operations of a region: all, or only those that one operation around it let in.
struct Control {
  Variance variance = kClusterUniform;
  OpId cause;
};

}  // namespace

class UniformityChecker {
 public:
  UniformityChecker(const Module& module, Diagnostics& diagnostics)
      : module_(module), diagnostics_(diagnostics), control_(module.region_count()) {}

  void check(const std::vector<OpId>& roots) {
    const Uniformity uniformity(module_, roots);
    uniformity_ = &uniformity;
    for (const OpId root : roots) {
      exited_ = {};
      for_each_nested(module_, root, [&](OpId op) { check_op(op); });
    }
    uniformity_ = nullptr;
  }

 private:
  void check_op(OpId op) {
    const Control& around = control_[module_.op(op).parent.index()];
    const OpKind kind = module_.op(op).kind;
    Control inside = around;
    const bool one = kind == ScfIf || kind == ScfSwitch || kind == ScfWhile || kind == KernelExit;
    const unsigned deciding = kind == ScfFor ? 3 : one ? 1 : 0;
    // The condition of a while loop decides about both of its regions.
    const OpId decider = kind == ScfWhile ? module_.region(module_.op_region(op, 0)).last : op;
    for (unsigned i = 0; i < deciding; ++i) {
      const Variance variance = uniformity_->of(module_.operand(decider, i));
      if (variance > inside.variance) inside = {variance, op};
    }
    for (unsigned i = 0; i < module_.op(op).region_count; ++i) {
      control_[module_.op_region(op, i).index()] = inside;
    }
    // Subgroups go on with the lanes that are left; a workgroup needs all of its invocations.
    if (kind == KernelExit && inside.variance > exited_.variance) exited_ = inside;
    if (op_info(kind).has(trait::Convergent)) check_convergent(op, around);
  }

  void check_convergent(OpId op, const Control& around) {
    const bool subgroup = scope_is_subgroup(op);
    const Control& control = !subgroup && exited_.variance > around.variance ? exited_ : around;
    if (control.variance <= (subgroup ? kSubgroupUniform : kWorkgroupUniform)) return;
    diagnostics_
        .emit(Diag::StructureNotUniform, module_.location(op),
              {{"op", std::string(op_info(module_.op(op).kind).name)},
               {"scope", subgroup ? "subgroup" : "workgroup"}})
        .notes.push_back({module_.location(control.cause),
                          module_.op(control.cause).kind == ScfFor
                              ? "the bounds of this loop vary between invocations"
                              : "this condition varies between invocations"});
  }

  bool scope_is_subgroup(OpId op) const {
    const OpKind kind = module_.op(op).kind;
    if (kind != KernelBarrier) return op_info(kind).name.starts_with("kernel.subgroup.");
    const auto scope = module_.attr(op, attr_slot(KernelBarrier, "scope")).bits;
    return enum_info(EnumId::Scope).cases[scope] == "subgroup";
  }

  const Module& module_;
  Diagnostics& diagnostics_;
  const Uniformity* uniformity_ = nullptr;
  std::vector<Control> control_;  // by region
  Control exited_;                // who left through kernel.exit before
};

Uniformity::Uniformity(const Module& module, const std::vector<OpId>& roots)
    : flow_(std::make_unique<VarianceFlow>(module, variance_of_functions(module))) {
  for (const OpId root : roots) flow_->add_body(root);
  flow_->run();
}
Uniformity::Uniformity(const Module& module, OpId root) : Uniformity(module, std::vector{root}) {}
Uniformity::~Uniformity() = default;
Uniformity::Uniformity(Uniformity&&) noexcept = default;
Distribution Uniformity::of(ValueId value) const { return flow_->of(value); }

void check_uniform_control(const Module& module, Diagnostics& diagnostics) {
  std::vector<OpId> roots;
  for_each_op(module, module.body(), [&](OpId root) {
    bool convergent = false;
    for_each_nested(module, root, [&](OpId op) {
      convergent |= op_info(module.op(op).kind).has(trait::Convergent);
    });
    if (convergent) roots.push_back(root);
  });
  if (!roots.empty()) UniformityChecker(module, diagnostics).check(roots);
}

}  // namespace loom
