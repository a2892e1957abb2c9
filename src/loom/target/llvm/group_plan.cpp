#include "loom/target/llvm/group_plan.h"

#include <algorithm>

#include "loom/dialect/op_info.h"
#include "loom/dialect/target_info.h"
#include "loom/dialect/uniformity.h"
#include "loom/ir/walk.h"
#include "loom/target/llvm/item_strides.h"
#include "loom/target/llvm/plan.h"

namespace loom {
namespace {

using enum OpKind;

// Where subgroups have one lane, only the workgroup's own operations make workitems meet.
bool is_meeting(const Module& module, OpId op, uint64_t lanes) {
  if (lanes > 1 && is_subgroup_collective(module.op(op).kind)) return true;
  switch (module.op(op).kind) {
    case KernelBarrier: {
      constexpr uint64_t kSubgroupScope = 1;
      return lanes > 1 || module.attr(op, attr_slot(KernelBarrier, "scope")).bits != kSubgroupScope;
    }
    case KernelWorkgroupReduce:
    case KernelWorkgroupScan:
    case KernelWorkgroupVoteAny:
    case KernelWorkgroupVoteAll:
    case KernelWorkgroupVoteCount:
      return true;
    default:
      return false;
  }
}

// A call of a function whose body has one; bodies do not call themselves where that matters.
bool calls_meeting(const Module& module, OpId op, uint64_t lanes) {
  if (module.op(op).kind != FuncCall) return false;
  std::vector<OpId> calls = {op};
  std::unordered_set<uint32_t> seen;
  bool found = false;
  while (!calls.empty() && !found) {
    const OpId call = calls.back();
    calls.pop_back();
    const OpId callee = module.symbol(symbol_ref(module, call, attr_slot(FuncCall, "callee")));
    if (!callee.valid() || !seen.insert(callee.index()).second) continue;
    for_each_nested(module, callee, [&](OpId inner) {
      found = found || is_meeting(module, inner, lanes);
      if (module.op(inner).kind == FuncCall) calls.push_back(inner);
    });
  }
  return found;
}

// Enough workitems along x to make vectors of.
bool has_lanes(const WorkgroupSize& size) { return size[0] && *size[0] >= 4; }

class Planner {
 public:
  Planner(const Module& module, OpId kernel, const WorkgroupSize& size, GroupRefusal& refusal)
      : module_(module),
        kernel_(kernel),
        refusal_(refusal),
        lanes_(subgroup_lanes(module, kernel)),
        strides_(module, kernel, size),
        has_lanes_(has_lanes(size)) {
    if (lanes_ > 1) uniformity_.emplace(module, kernel);
  }

  std::optional<GroupPlan> run() {
    mark_meetings();
    mark_taken();
    const RegionId body = module_.op_region(kernel_, region_slot(KernelDef, "body"));
    for (const ValueId arg : module_.args(body)) once_.insert(arg.index());
    if (!split(body, plan_.parts)) return std::nullopt;
    connect(plan_.parts);
    return std::move(plan_);
  }

 private:
  // Every operation that a meeting stands in.
  void mark_meetings() {
    for_each_nested(module_, kernel_, [&](OpId op) {
      if (!is_meeting(module_, op, lanes_) && !calls_meeting(module_, op, lanes_)) return;
      for (OpId around = op; around.valid() && around != kernel_;
           around = parent_op(module_, around)) {
        if (!meets_.insert(around.index()).second) break;
      }
    });
  }

  // What the collectives take is kept.
  void mark_taken() {
    for_each_nested(module_, kernel_, [&](OpId op) {
      if (!is_meeting(module_, op, lanes_)) return;
      for (const ValueId value : module_.operands(op)) taken_.insert(value.index());
    });
  }

  bool is_cheap(OpId op) const {
    const OpInfo& info = op_info(module_.op(op).kind);
    switch (info.kind) {
      case KernelWorkitemId:
      case KernelWorkitemDispatchId:
      case BufferView:
      case ViewSubview:
      case ViewRefine:
        break;
      case IndexDiv:
      case IndexRem:
        return false;
      default:
        if (info.dialect != "index" || info.effect != Effect::Pure) return false;
    }
    if (module_.op(op).region_count != 0) return false;
    for (unsigned i = 0; i < module_.op(op).result_count; ++i) {
      if (taken_.contains(module_.result(op, i).index())) return false;
      for (const Dim dim : module_.types[module_.type_of(module_.result(op, i))].dims) {
        if (dim.is_dynamic() && !is_at_hand(dim.value())) return false;
      }
    }
    return std::ranges::all_of(module_.operands(op),
                               [&](ValueId value) { return is_at_hand(value); });
  }
  bool is_at_hand(ValueId value) const {
    return computed_once(value) || plan_.again.contains(value.index()) ||
           lagging_.contains(value.index());
  }
  void results_again(OpId op) {
    for (unsigned i = 0; i < module_.op(op).result_count; ++i) {
      plan_.again.emplace(module_.result(op, i).index(), op);
    }
    plan_.again_rank.emplace(op.index(), plan_.again_rank.size());
  }

  bool refuse(OpId op, std::string_view detail) {
    refusal_ = {op, detail};
    return false;
  }

  bool computed_once(ValueId value) const { return once_.contains(value.index()); }

  // Computed from what is the same for all workitems, and without any effect: computed once.
  bool is_uniform(OpId op) const {
    const OpInfo& info = op_info(module_.op(op).kind);
    switch (info.kind) {
      case KernelWorkitemId:
      case KernelWorkitemDispatchId:
      case KernelSubgroupId:
      case KernelSubgroupLaneId:
        return false;
      case BufferAlloca:
        return static_cast<MemorySpace>(module_.attr(op, attr_slot(BufferAlloca, "space")).bits) ==
               MemorySpace::Workgroup;
      default:
        break;
    }
    if (info.effect != Effect::Pure || info.has(trait::Terminator | trait::Convergent) ||
        module_.op(op).region_count != 0) {
      return false;
    }
    const auto operands = module_.operands(op);
    return std::ranges::all_of(operands, [&](ValueId value) { return computed_once(value); }) &&
           names_once(op);
  }

  // A load of the same element by all workitems, with nothing in front of it that writes: whoever
  // else wrote the element since the workitems last met would be in a race with it.
  bool is_uniform_load(OpId op, const std::vector<GroupPart>& parts) const {
    if (module_.op(op).kind != ViewLoad ||
        (flags_of(module_, op, attr_slot(ViewLoad, "flags")) & kVolatile) != 0) {
      return false;
    }
    const bool behind_writes =
        !parts.empty() && parts.back().kind == GroupPart::Kind::Items &&
        !std::ranges::all_of(parts.back().ops, [&](OpId before) { return only_reads(before); });
    return !behind_writes && std::ranges::all_of(module_.operands(op), [&](ValueId value) {
      return computed_once(value);
    });
  }
  bool only_reads(OpId op) const {
    const Effect effect = op_info(module_.op(op).kind).effect;
    return module_.op(op).region_count == 0 && (effect == Effect::Pure || effect == Effect::Read);
  }

  // Extents that the results' types name.
  bool names_once(OpId op) const {
    for (unsigned i = 0; i < module_.op(op).result_count; ++i) {
      for (const Dim dim : module_.types[module_.type_of(module_.result(op, i))].dims) {
        if (dim.is_dynamic() && !computed_once(dim.value())) return false;
      }
    }
    return true;
  }

  void results_once(OpId op) {
    for (unsigned i = 0; i < module_.op(op).result_count; ++i) {
      once_.insert(module_.result(op, i).index());
    }
  }
  void results_in_slots(OpId op) {
    for (unsigned i = 0; i < module_.op(op).result_count; ++i) add_slot(module_.result(op, i));
  }
  void add_slot(ValueId value) {
    if (plan_.slots.insert(value.index()).second) plan_.slot_order.push_back(value);
  }

  bool split(RegionId region, std::vector<GroupPart>& parts) {
    for (OpId op = module_.region(region).first; op.valid(); op = module_.op(op).next) {
      if (op_info(module_.op(op).kind).has(trait::Terminator)) continue;
      if (meets_.contains(op.index())) {
        if (!add_meeting(op, parts)) return false;
      } else if (runs_in_step(op)) {
        if (!add_loop(op, parts)) return false;
      } else if (is_uniform(op) || is_uniform_load(op, parts)) {
        // Nothing that a part before it does can change it.
        results_once(op);
        parts.push_back({.kind = GroupPart::Kind::Uniform, .op = op});
        std::ranges::rotate(parts.begin() + last_items(parts), parts.end() - 1, parts.end());
      } else if (is_cheap(op)) {
        results_again(op);
      } else {
        if (parts.empty() || parts.back().kind != GroupPart::Kind::Items) parts.emplace_back();
        parts.back().ops.push_back(op);
      }
    }
    return true;
  }

  // Where the last part begins if it is one of items, so that uniform operations go in front of it.
  static std::ptrdiff_t last_items(const std::vector<GroupPart>& parts) {
    const auto before = static_cast<std::ptrdiff_t>(parts.size()) - 1;  // without the new one
    const bool behind_items =
        before > 0 && parts[static_cast<size_t>(before - 1)].kind == GroupPart::Kind::Items;
    return behind_items ? before - 1 : before;
  }

  bool runs_in_step(OpId op) const {
    if (module_.op(op).kind != ScfFor || !has_lanes_ || !strides_.gains_in_step(op)) return false;
    return !inside_lag_ || lag_of(op) == 0;
  }
  int64_t lag_of(OpId loop) const {
    return strides_.of(operand_group(module_, loop, operand_slot(ScfFor, "lo"))[0]).value_or(0);
  }

  bool add_loop(OpId op, std::vector<GroupPart>& parts) {
    GroupPart part{.kind = GroupPart::Kind::For, .op = op};
    if (!meets_.contains(op.index())) part.lag = lag_of(op);
    const RegionId body = module_.op_region(op, region_slot(ScfFor, "body"));
    const auto args = module_.args(body);
    (part.lag == 0 ? once_ : lagging_).insert(args[0].index());
    for (const ValueId carried : args.subspan(1)) add_slot(carried);
    results_in_slots(op);
    const bool around = inside_lag_;
    inside_lag_ = around || part.lag != 0;
    const bool good = split(body, part.inner);
    inside_lag_ = around;
    parts.push_back(std::move(part));
    return good;
  }

  bool add_meeting(OpId op, std::vector<GroupPart>& parts) {
    switch (module_.op(op).kind) {
      case ScfFor:
        if (!surely_uniform(module_.operands(op).first(3))) return refuse(op, kApart);
        return add_loop(op, parts);
      case ScfIf: {
        if (!surely_uniform(module_.operands(op))) return refuse(op, kApart);
        GroupPart part{.kind = GroupPart::Kind::If, .op = op};
        results_in_slots(op);
        if (!split(module_.op_region(op, region_slot(ScfIf, "then")), part.inner)) return false;
        const RegionId other = module_.op_region(op, region_slot(ScfIf, "else"));
        if (module_.region(other).has_body && !split(other, part.other)) return false;
        parts.push_back(std::move(part));
        return true;
      }
      default:
        break;
    }
    if (!is_meeting(module_, op, lanes_)) return refuse(op, "around a barrier or a collective");
    if (!holds_lanes(op)) return refuse(op, "into a mask of fewer bits than a subgroup has lanes");
    if (module_.op(op).kind == KernelWorkgroupScan || is_subgroup_collective(module_.op(op).kind)) {
      results_in_slots(op);
    } else {
      results_once(op);
    }
    parts.push_back({.kind = GroupPart::Kind::Meeting, .op = op});
    return true;
  }

  // --- what goes through slots ------------------------------------------------------------------

  // Calls f(value) for the operands, and the extents of the types, of an operation and what is in
  // it.
  template <class F>
  void each_use(OpId op, F&& f) const {
    const auto of_one = [&](OpId one) {
      for (const ValueId value : module_.operands(one)) {
        f(value);
        extents_of(value, f);
      }
      for (unsigned i = 0; i < module_.op(one).result_count; ++i) {
        extents_of(module_.result(one, i), f);
      }
    };
    of_one(op);
    for_each_nested(module_, op, of_one);
  }
  template <class F>
  void extents_of(ValueId value, F&& f) const {
    for (const Dim dim : module_.types[module_.type_of(value)].dims) {
      if (dim.is_dynamic()) f(dim.value());
    }
  }

  OpId terminator(RegionId region) const {
    OpId last;
    for (OpId op = module_.region(region).first; op.valid(); op = module_.op(op).next) last = op;
    return last.valid() && op_info(module_.op(last).kind).has(trait::Terminator) ? last : OpId();
  }

  // What is used by something else than the part of items that computes it has a slot.
  void connect(std::vector<GroupPart>& parts) {
    define(parts);
    use(parts);
    finish(parts);
  }
  void define(const std::vector<GroupPart>& parts) {
    for (const GroupPart& part : parts) {
      for (const OpId op : part.ops) {
        for (unsigned i = 0; i < module_.op(op).result_count; ++i) {
          home_[module_.result(op, i).index()] = &part;
        }
      }
      define(part.inner);
      define(part.other);
    }
  }
  void need(ValueId value, const GroupPart* user) {
    const auto home = home_.find(value.index());
    if (home != home_.end() && home->second != user) add_slot(value);
  }
  void need_all(OpId op, const GroupPart* user = nullptr) {
    if (!op.valid()) return;
    for (const ValueId value : module_.operands(op)) {
      need(value, user);
      extents_of(value, [&](ValueId extent) { need(extent, user); });
    }
  }
  void use(const std::vector<GroupPart>& parts) {
    for (const GroupPart& part : parts) {
      for (const OpId op : part.ops) each_use(op, [&](ValueId value) { need(value, &part); });
      if (!part.op.valid()) continue;
      need_all(part.op);
      for (unsigned i = 0; i < module_.op(part.op).region_count; ++i) {
        need_all(terminator(module_.op_region(part.op, i)), part.yielding());
      }
      use(part.inner);
      use(part.other);
    }
  }
  void finish(std::vector<GroupPart>& parts) {
    for (GroupPart& part : parts) {
      std::unordered_set<uint32_t> seen;
      std::vector<ValueId> used;
      for (const OpId op : part.ops) {
        each_use(op, [&](ValueId value) {
          used.push_back(value);
          const auto home = home_.find(value.index());
          const bool made_here = home != home_.end() && home->second == &part;
          if (!plan_.slots.contains(value.index()) || made_here) return;
          if (seen.insert(value.index()).second) part.reads.push_back(value);
        });
        for (unsigned i = 0; i < module_.op(op).result_count; ++i) {
          const ValueId result = module_.result(op, i);
          if (plan_.slots.contains(result.index())) part.writes.push_back(result);
        }
      }
      part.again = plan_.chain(module_, used);
      finish(part.inner);
      finish(part.other);
    }
  }

  // A mask of lanes has a bit for each.
  bool holds_lanes(OpId op) const {
    switch (module_.op(op).kind) {
      case KernelSubgroupVoteBallot:
      case KernelSubgroupActiveMask:
      case KernelSubgroupMatchAny:
      case KernelSubgroupMatchAll:
        return lanes_ <= scalar_bits(module_.types[module_.type_of(module_.result(op))].element);
      default:
        return true;
    }
  }
  static constexpr std::string_view kApart =
      "where subgroups of one workgroup may go different ways around a collective";
  // What only the lanes of a subgroup share decides for each subgroup apart.
  bool surely_uniform(std::span<const ValueId> values) const {
    return !uniformity_ || std::ranges::all_of(values, [&](ValueId value) {
      return uniformity_->of(value) <= Distribution::Workgroup;
    });
  }

  const Module& module_;
  OpId kernel_;
  GroupRefusal& refusal_;
  uint64_t lanes_;
  std::optional<Uniformity> uniformity_;
  const ItemStrides strides_;
  const bool has_lanes_;
  bool inside_lag_ = false;
  std::unordered_set<uint32_t> meets_;    // by OpId index
  std::unordered_set<uint32_t> once_;     // by ValueId index
  std::unordered_set<uint32_t> lagging_;  // numbers of loops, by ValueId index
  std::unordered_set<uint32_t> taken_;    // by collectives, by ValueId index
  std::unordered_map<uint32_t, const GroupPart*> home_;
  GroupPlan plan_;
};

}  // namespace

std::vector<OpId> GroupPlan::chain(const Module& module, std::span<const ValueId> values) const {
  std::vector<ValueId> open(values.begin(), values.end());
  std::unordered_set<uint32_t> seen;
  std::vector<OpId> ops;
  while (!open.empty()) {
    const auto found = again.find(open.back().index());
    open.pop_back();
    if (found == again.end() || !seen.insert(found->second.index()).second) continue;
    const OpId op = found->second;
    ops.push_back(op);
    for (const ValueId operand : module.operands(op)) open.push_back(operand);
    for (unsigned i = 0; i < module.op(op).result_count; ++i) {
      for (const Dim dim : module.types[module.type_of(module.result(op, i))].dims) {
        if (dim.is_dynamic()) open.push_back(dim.value());
      }
    }
  }
  std::ranges::sort(ops, {}, [&](OpId op) { return again_rank.at(op.index()); });
  return ops;
}

uint64_t subgroup_lanes(const Module& module, OpId kernel) {
  constexpr unsigned kTarget = attr_slot(KernelDef, "target");
  if (!module.has_attr(kernel, kTarget)) return 1;
  const OpId record = module.symbol(module.attr(kernel, kTarget).string());
  if (!record.valid()) return 1;
  return std::max(1u, record_facts(module, record, {}).subgroup_size.value_or(1));
}

bool is_subgroup_collective(OpKind kind) {
  const OpInfo& info = op_info(kind);
  return info.has(trait::Convergent) && info.name.starts_with("kernel.subgroup.");
}

bool workitems_meet(const Module& module, OpId kernel) {
  const uint64_t lanes = subgroup_lanes(module, kernel);
  bool found = false;
  for_each_nested(module, kernel, [&](OpId op) {
    found = found || is_meeting(module, op, lanes) || calls_meeting(module, op, lanes);
  });
  return found;
}

bool has_loops_in_step(const Module& module, OpId kernel, const WorkgroupSize& size) {
  if (!has_lanes(size)) return false;
  const ItemStrides strides(module, kernel, size);
  bool found = false;
  for_each_op(module, module.op_region(kernel, region_slot(KernelDef, "body")), [&](OpId op) {
    found = found || (module.op(op).kind == ScfFor && strides.gains_in_step(op));
  });
  return found;
}

std::optional<GroupPlan> plan_group(const Module& module, OpId kernel, const WorkgroupSize& size,
                                    GroupRefusal& refusal) {
  return Planner(module, kernel, size, refusal).run();
}

}  // namespace loom
