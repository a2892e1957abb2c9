#include "loom/target/llvm/group_plan.h"

#include <algorithm>

#include "loom/dialect/op_info.h"
#include "loom/dialect/uniformity.h"
#include "loom/ir/walk.h"
#include "loom/target/llvm/item_strides.h"
#include "loom/target/llvm/meetings.h"
#include "loom/target/llvm/plan.h"

namespace loom {
namespace {

using enum OpKind;

// Enough workitems along x to make vectors of.
bool has_lanes(const WorkgroupSize& size) { return size[0] && *size[0] >= 4; }

using Parts = std::vector<GroupPart>;

class Planner {
 public:
  Planner(const Module& module, OpId kernel, const WorkgroupSize& size, GroupRefusal& refusal)
      : module_(module),
        kernel_(kernel),
        refusal_(refusal),
        lanes_(subgroup_lanes(module, kernel)),
        strides_(module, kernel, size),
        has_lanes_(has_lanes(size)) {}

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
    const auto mark = [&](OpId op, std::unordered_set<uint32_t>& marked) {
      for (; op.valid() && op != kernel_; op = parent_op(module_, op)) {
        if (!marked.insert(op.index()).second) break;
      }
    };
    for_each_nested(module_, kernel_, [&](OpId op) {
      if (is_workgroup_meeting(module_, op)) mark(op, all_meet_);
      if (is_meeting(module_, op, lanes_) || calls_meeting(module_, op, lanes_)) mark(op, meets_);
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
  bool is_uniform_load(OpId op, const Parts& parts) const {
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

  bool split(RegionId region, Parts& parts) {
    return !module_.region(region).has_body || split_from(module_.region(region).first, parts);
  }
  bool split_from(OpId first, Parts& parts) {
    for (OpId op = first; op.valid(); op = module_.op(op).next) {
      if (op_info(module_.op(op).kind).has(trait::Terminator)) continue;
      if (module_.op(op).kind == KernelExit) {
        bool took_rest = false;
        if (!add_exit(op, parts, took_rest)) return false;
        if (took_rest) return true;
      } else if (meets_.contains(op.index())) {
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
  static std::ptrdiff_t last_items(const Parts& parts) {
    const auto before = static_cast<std::ptrdiff_t>(parts.size()) - 1;  // without the new one
    const bool behind_items =
        before > 0 && parts[static_cast<size_t>(before - 1)].kind == GroupPart::Kind::Items;
    return behind_items ? before - 1 : before;
  }

  bool runs_in_step(OpId op) const {
    if (module_.op(op).kind != ScfFor || !has_lanes_ || apart_) return false;
    if (!strides_.gains_in_step(op)) return false;
    return !inside_lag_ || lag_of(op) == 0;
  }
  int64_t lag_of(OpId loop) const {
    return strides_.of(operand_group(module_, loop, operand_slot(ScfFor, "lo"))[0]).value_or(0);
  }

  bool add_loop(OpId op, Parts& parts) {
    GroupPart part{.kind = GroupPart::Kind::For, .op = op};
    if (!meets_.contains(op.index())) part.lag = lag_of(op);
    const RegionId body = module_.op_region(op, region_slot(ScfFor, "body"));
    const auto args = module_.args(body);
    (part.lag == 0 ? once_ : lagging_).insert(args[0].index());
    for (const ValueId carried : args.subspan(1)) add_slot(carried);
    results_in_slots(op);
    const bool around = inside_lag_;
    inside_lag_ = around || part.lag != 0;
    part.ways.resize(1);
    const bool good = split(body, part.ways[0]);
    inside_lag_ = around;
    parts.push_back(std::move(part));
    return good;
  }

  // Runs `make` for parts that subgroups run one after the other.
  template <class F>
  bool add_subgroups(Parts& parts, F&& make) {
    GroupPart part{.kind = GroupPart::Kind::Subgroups, .ways = std::vector<Parts>(1)};
    apart_ = true;
    const bool good = make(part.ways[0]);
    apart_ = false;
    parts.push_back(std::move(part));
    return good;
  }

  // Where nobody meets any more, each workitem goes by itself.
  bool add_exit(OpId op, Parts& parts, bool& took_rest) {
    bool meet_behind = false;
    bool all_meet_behind = false;
    for (OpId one = op; one.valid(); one = module_.op(one).next) {
      meet_behind = meet_behind || meets_.contains(one.index());
      all_meet_behind = all_meet_behind || all_meet_.contains(one.index());
    }
    if (!meet_behind) {
      if (parts.empty() || parts.back().kind != GroupPart::Kind::Items) parts.emplace_back();
      for (OpId one = op; one.valid(); one = module_.op(one).next) {
        if (!op_info(module_.op(one).kind).has(trait::Terminator)) parts.back().ops.push_back(one);
      }
      took_rest = true;
      return true;
    }
    const RegionId body = module_.op_region(op, region_slot(KernelExit, "body"));
    if (all_meet_behind || together(module_.operands(op))) {
      GroupPart part{.kind = GroupPart::Kind::Exit, .op = op, .ways = std::vector<Parts>(1)};
      if (!split(body, part.ways[0])) return false;
      parts.push_back(std::move(part));
      return true;
    }
    if (!apart_) {
      took_rest = true;
      return add_subgroups(parts, [&](Parts& inner) { return split_from(op, inner); });
    }
    if (meets_.contains(op.index())) return refuse(op, kApart);
    plan_.leaves = true;
    parts.push_back({.kind = GroupPart::Kind::Leave, .ops = {op}});
    return true;
  }

  // What decides which way the operation goes.
  std::span<const ValueId> deciding(OpId op) const {
    switch (module_.op(op).kind) {
      case ScfFor:
        return module_.operands(op).first(3);
      case ScfWhile: {
        const RegionId before = module_.op_region(op, region_slot(ScfWhile, "before"));
        return module_.operands(terminator(before)).first(1);
      }
      default:
        return module_.operands(op).first(1);
    }
  }

  bool add_control(OpId op, Parts& parts) {
    // Where all of the workgroup meet inside, the rules of the language make all go there.
    if (lanes_ > 1 && !all_meet_.contains(op.index()) && !together(deciding(op))) {
      if (apart_) return refuse(op, kApart);
      return add_subgroups(parts, [&](Parts& inner) { return add_ways(op, inner); });
    }
    return add_ways(op, parts);
  }
  bool add_ways(OpId op, Parts& parts) {
    const OpKind kind = module_.op(op).kind;
    if (kind == ScfFor) return add_loop(op, parts);
    using enum GroupPart::Kind;
    GroupPart part{.kind = kind == ScfIf ? If : kind == ScfSwitch ? Switch : While, .op = op};
    results_in_slots(op);
    part.ways.resize(module_.op(op).region_count);
    for (unsigned i = 0; i < part.ways.size(); ++i) {
      const RegionId region = module_.op_region(op, i);
      for (const ValueId arg : module_.args(region)) add_slot(arg);
      if (!split(region, part.ways[i])) return false;
    }
    parts.push_back(std::move(part));
    return true;
  }

  bool add_meeting(OpId op, Parts& parts) {
    switch (module_.op(op).kind) {
      case ScfFor:
      case ScfIf:
      case ScfSwitch:
      case ScfWhile:
        return add_control(op, parts);
      default:
        break;
    }
    if (!is_meeting(module_, op, lanes_))
      return refuse(op, "of a function with a barrier or a collective");
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
  void connect(Parts& parts) {
    define(parts);
    use(parts);
    finish(parts);
  }
  void define(const Parts& parts) {
    for (const GroupPart& part : parts) {
      for (const OpId op : part.ops) {
        for (unsigned i = 0; i < module_.op(op).result_count; ++i) {
          home_[module_.result(op, i).index()] = &part;
        }
      }
      for (const Parts& way : part.ways) define(way);
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
  void use(const Parts& parts) {
    for (const GroupPart& part : parts) {
      for (const OpId op : part.ops) each_use(op, [&](ValueId value) { need(value, &part); });
      if (part.op.valid()) {
        need_all(part.op);
        for (unsigned i = 0; i < module_.op(part.op).region_count; ++i) {
          need_all(terminator(module_.op_region(part.op, i)), part.yielding());
        }
      }
      for (const Parts& way : part.ways) use(way);
    }
  }
  void finish(Parts& parts) {
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
      for (Parts& way : part.ways) finish(way);
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
      "where lanes of one subgroup may go different ways around a collective";
  // In all workitems that run these parts in step: those of the workgroup, or of each subgroup.
  bool together(std::span<const ValueId> values) {
    if (!uniformity_) uniformity_.emplace(module_, kernel_);
    const Distribution most = apart_ ? Distribution::Subgroup : Distribution::Workgroup;
    return std::ranges::all_of(values,
                               [&](ValueId value) { return uniformity_->of(value) <= most; });
  }

  const Module& module_;
  OpId kernel_;
  GroupRefusal& refusal_;
  uint64_t lanes_;
  std::optional<Uniformity> uniformity_;
  const ItemStrides strides_;
  const bool has_lanes_;
  bool inside_lag_ = false;
  bool apart_ = false;                     // subgroups run these parts one after the other
  std::unordered_set<uint32_t> meets_;     // by OpId index
  std::unordered_set<uint32_t> all_meet_;  // the same, of the whole workgroup
  std::unordered_set<uint32_t> once_;      // by ValueId index
  std::unordered_set<uint32_t> lagging_;   // numbers of loops, by ValueId index
  std::unordered_set<uint32_t> taken_;     // by collectives, by ValueId index
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
