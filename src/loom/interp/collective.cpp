// Barriers, collectives and transfers: where the invocations of a scope meet.
#include <fmt/format.h>

#include <algorithm>

#include "loom/dialect/op_info.h"
#include "loom/interp/machine.h"

namespace loom::interp {

using enum OpKind;

namespace {

bool same_place(const Invocation& a, const Invocation& b) {
  if (a.waiting != b.waiting || a.frames.size() != b.frames.size()) return false;
  for (size_t i = 0; i < a.frames.size(); ++i) {
    if (a.frames[i].call != b.frames[i].call) return false;
  }
  return true;
}

}  // namespace

// Lets every scope go on whose members have all arrived. Members that left by kernel.exit are no
// longer counted.
bool Machine::resolve(std::span<Invocation> group, const Launch& launch) {
  const auto is_subgroup = [&](OpId op) {
    if (module_.op(op).kind == KernelBarrier) {
      constexpr int64_t kSubgroupScope = 1;
      return module_.attr(op, attr_slot(KernelBarrier, "scope")).value() == kSubgroupScope;
    }
    return op_info(module_.op(op).kind).name.starts_with("kernel.subgroup.");
  };
  bool progress = false;
  const auto meet = [&](size_t begin, size_t end, bool subgroup) {
    std::vector<Invocation*> members;
    for (size_t i = begin; i < end; ++i) {
      Invocation& item = group[i];
      if (item.status == Invocation::Exited) continue;
      if (item.status != Invocation::Waiting || is_subgroup(item.waiting) != subgroup) return true;
      if (!members.empty() && !same_place(*members[0], item)) return true;
      members.push_back(&item);
    }
    if (members.empty()) return true;
    if (!collective(members[0]->waiting, members, launch)) return false;
    for (Invocation* item : members) item->status = Invocation::Ready;
    progress = true;
    return true;
  };
  const auto width = static_cast<size_t>(launch.subgroup_size);
  for (size_t begin = 0; begin < group.size(); begin += width) {
    if (!meet(begin, std::min(begin + width, group.size()), true)) return false;
  }
  if (!progress && !meet(0, group.size(), false)) return false;
  return progress || diverged(group, launch);
}

bool Machine::diverged(std::span<Invocation> group, const Launch& launch) {
  const auto first = std::ranges::find(group, Invocation::Waiting, &Invocation::status);
  const bool subgroup =
      op_info(module_.op(first->waiting).kind).name.starts_with("kernel.subgroup.");
  size_t count = 0;
  size_t total = 0;
  OpId other;
  for (const Invocation& item : group) {
    if (subgroup && item.subgroup() != first->subgroup()) continue;
    ++total;
    const bool here = item.status == Invocation::Waiting && same_place(*first, item);
    count += here;
    if (!here && item.status == Invocation::Waiting && !other.valid()) other = item.waiting;
  }
  static_cast<void>(launch);
  Diagnostic& error = diagnostics_.emit(Diag::RunDivergence, module_.location(first->waiting),
                                        {{"op", op_name(first->waiting)},
                                         {"count", std::to_string(count)},
                                         {"total", std::to_string(total)},
                                         {"scope", subgroup ? "subgroup" : "workgroup"}});
  if (other.valid()) error.notes.push_back({module_.location(other), "others wait here"});
  return false;
}

namespace {

struct Clusters {
  int64_t size = 0;  // 0: one cluster of all
  int64_t stride = 1;

  // Lanes of one cluster have one number.
  int64_t of(int64_t lane) const {
    if (size == 0) return 0;
    return lane / (size * stride) * stride + lane % stride;
  }
};

}  // namespace

// All members are at `op`, in the order of their numbers.
bool Machine::collective(OpId op, std::span<Invocation*> members, const Launch& launch) {
  const OpKind kind = module_.op(op).kind;
  if (kind == KernelBarrier) {
    constexpr int64_t kWorkgroupMemory = 0, kSubgroupScope = 1;
    const int memory =
        module_.attr(op, attr_slot(KernelBarrier, "memory")).value() == kWorkgroupMemory ? 1 : 0;
    const bool subgroup =
        module_.attr(op, attr_slot(KernelBarrier, "scope")).value() == kSubgroupScope;
    Knowledge known;
    bool knows = false;
    for (const Invocation* item : members) {
      if (!item->known) continue;
      known.join(*item->known);
      knows = true;
    }
    const auto shared = knows ? std::make_shared<const Knowledge>(std::move(known)) : nullptr;
    for (Invocation* item : members) {
      ++(subgroup ? item->subgroup_epochs : item->epochs)[memory];
      if (shared) item->known = shared;
    }
    return true;
  }
  if (kind == KernelSubgroupActiveMask) return vote(op, members, launch, {});
  std::vector<LaneValues> values;
  for (Invocation* item : members) {
    auto value = lanes(*item, op, module_.operand(op, 0));
    if (!value) return false;
    values.push_back(std::move(*value));
  }
  switch (kind) {
    case KernelSubgroupReduce:
    case KernelWorkgroupReduce:
    case KernelSubgroupScan:
    case KernelWorkgroupScan:
      return combine(op, members, values);
    case KernelSubgroupShuffle:
    case KernelSubgroupBroadcast:
    case KernelSubgroupBroadcastFirst:
      return exchange(op, members, launch, values);
    default:
      return vote(op, members, launch, values);
  }
}

void Machine::set_lanes(Invocation& t, ValueId result, const LaneValues& value) {
  if (module_.types.is_scalar(module_.type_of(result))) {
    set(t, result, value.at(0));
  } else {
    set(t, result, lanes_datum(value));
  }
}

// Reductions and scans, in the order of the lanes or against it.
bool Machine::combine(OpId op, std::span<Invocation*> members, std::span<const LaneValues> values) {
  const auto number = [&](std::string_view name, int64_t otherwise) {
    const AttrId attr = attribute(op, name);
    return attr.valid() ? module_.attrs[attr].value() : otherwise;
  };
  const auto kind = static_cast<CombiningKind>(number("kind", 0));
  const Clusters clusters{number("cluster_size", 0), number("cluster_stride", 1)};
  const bool scan = attribute(op, "mode").valid();
  const bool reverse = number("direction", 0) != 0;
  const bool exclusive = number("mode", 0) != 0;
  const bool by_lane = op_info(module_.op(op).kind).name.starts_with("kernel.subgroup.");
  std::map<int64_t, LaneValues> sums;
  std::vector<LaneValues> results(values.begin(), values.end());
  for (size_t step = 0; step < members.size(); ++step) {
    const size_t i = reverse ? members.size() - 1 - step : step;
    const int64_t cluster = clusters.of(by_lane ? members[i]->lane() : members[i]->flat);
    const auto found = sums.find(cluster);
    if (exclusive) {
      if (found != sums.end()) {
        results[i] = found->second;
      } else {
        const auto start_value = neutral_element(kind, values[i].element);
        std::ranges::fill(results[i].lanes, start_value.bits);
      }
    }
    if (found == sums.end()) {
      sums.emplace(cluster, values[i]);
    } else {
      for (size_t lane = 0; lane < values[i].lanes.size(); ++lane) {
        const ScalarValue operands[] = {found->second.at(lane), values[i].at(lane)};
        ScalarValue sum;
        if (evaluate(combining_op(kind), {}, operands, values[i].element, sum) != EvalStatus::Ok) {
          return unsupported(op);
        }
        found->second.lanes[lane] = sum.bits;
      }
    }
    if (scan && !exclusive) results[i] = sums.at(cluster);
  }
  for (size_t i = 0; i < members.size(); ++i) {
    if (!scan) {
      results[i] = sums.at(clusters.of(by_lane ? members[i]->lane() : members[i]->flat));
    }
    set_lanes(*members[i], module_.result(op), results[i]);
  }
  return true;
}

// Values that move between lanes.
bool Machine::exchange(OpId op, std::span<Invocation*> members, const Launch& launch,
                       std::span<const LaneValues> values) {
  const OpKind kind = module_.op(op).kind;
  const auto member_at = [&](int64_t lane) -> std::optional<size_t> {
    for (size_t i = 0; i < members.size(); ++i) {
      if (members[i]->lane() == lane) return i;
    }
    return std::nullopt;
  };
  for (size_t i = 0; i < members.size(); ++i) {
    Invocation& item = *members[i];
    if (kind == KernelSubgroupBroadcastFirst) {
      set_lanes(item, module_.result(op), values[0]);
      continue;
    }
    const auto amount = integer(item, op, module_.operand(op, 1));
    if (!amount) return false;
    if (kind == KernelSubgroupBroadcast) {
      const auto first = integer(*members[0], op, module_.operand(op, 1));
      const auto source = member_at(*amount);
      if (first != amount || !source) {
        return violation(op, first != amount
                                 ? fmt::format("the lane {} is not the same for all: another asks "
                                               "for {}",
                                               *amount, *first)
                                 : fmt::format("lane {} is not active", *amount));
      }
      set_lanes(item, module_.result(op), values[*source]);
      continue;
    }
    const auto width = integer(item, op, module_.operand(op, 2));
    if (!width) return false;
    if (*width <= 0 || *width > launch.subgroup_size || (*width & (*width - 1)) != 0) {
      return violation(op, fmt::format("the width {} is no power of two up to the subgroup size {}",
                                       *width, launch.subgroup_size));
    }
    const int64_t base = item.lane() / *width * *width;
    int64_t from = 0;
    switch (static_cast<ShuffleKind>(
        module_.attr(op, attr_slot(KernelSubgroupShuffle, "kind")).value())) {
      case ShuffleKind::Xor:
        from = item.lane() ^ *amount;
        break;
      case ShuffleKind::Up:
        from = item.lane() - *amount;
        break;
      case ShuffleKind::Down:
        from = item.lane() + *amount;
        break;
      case ShuffleKind::Index:
        from = base + *amount;
        break;
    }
    const auto source =
        from >= base && from < base + *width ? member_at(from) : std::optional<size_t>();
    set_lanes(item, module_.result(op, 0), values[source.value_or(i)]);
    set(item, module_.result(op, 1), ScalarValue{ScalarKind::I1, source.has_value()});
  }
  return true;
}

// Votes, masks of lanes, and matches.
bool Machine::vote(OpId op, std::span<Invocation*> members, const Launch& launch,
                   std::span<const LaneValues> values) {
  const OpKind kind = module_.op(op).kind;
  const auto truth = [&](size_t i) { return (values[i].lanes[0] & 1) != 0; };
  uint64_t active = 0, ballot = 0;
  int64_t count = 0;
  for (size_t i = 0; i < members.size(); ++i) {
    const uint64_t bit = uint64_t{1} << (members[i]->lane() & 63);
    active |= bit;
    if (values.empty() || !truth(i)) continue;
    ballot |= bit;
    ++count;
  }
  const auto all = static_cast<int64_t>(members.size());
  bool equal = true;
  for (const LaneValues& value : values) equal &= value.lanes == values[0].lanes;
  const ScalarKind mask_kind = module_.types[module_.type_of(module_.result(op))].element;
  if (kind == KernelSubgroupVoteBallot || kind == KernelSubgroupActiveMask ||
      kind == KernelSubgroupMatchAny || kind == KernelSubgroupMatchAll) {
    if (launch.subgroup_size > scalar_bits(mask_kind)) {
      return violation(op, fmt::format("a mask of {} bits does not hold {} lanes",
                                       scalar_bits(mask_kind), launch.subgroup_size));
    }
  }
  for (size_t i = 0; i < members.size(); ++i) {
    const auto give = [&](ScalarKind type, uint64_t bits, unsigned result = 0) {
      set(*members[i], module_.result(op, result), from_bits(type, bits));
    };
    switch (kind) {
      case KernelSubgroupVoteAny:
      case KernelWorkgroupVoteAny:
        give(ScalarKind::I1, count != 0);
        break;
      case KernelSubgroupVoteAll:
      case KernelWorkgroupVoteAll:
        give(ScalarKind::I1, count == all);
        break;
      case KernelWorkgroupVoteCount:
        give(mask_kind, static_cast<uint64_t>(count));
        break;
      case KernelSubgroupVoteBallot:
        give(mask_kind, ballot);
        break;
      case KernelSubgroupActiveMask:
        give(mask_kind, active);
        break;
      case KernelSubgroupMatchAny: {
        uint64_t same = 0;
        for (size_t j = 0; j < members.size(); ++j) {
          if (values[j].lanes == values[i].lanes) same |= uint64_t{1} << (members[j]->lane() & 63);
        }
        give(mask_kind, same);
        break;
      }
      case KernelSubgroupMatchAll:
        give(mask_kind, equal ? active : 0);
        give(ScalarKind::I1, equal, 1);
        break;
      default:
        return unsupported(op);
    }
  }
  return true;
}

}  // namespace loom::interp
