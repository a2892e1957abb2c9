// How a kernel whose workitems meet is run by one thread: its body as parts, each of which runs for
// all workitems before the next one begins.
//
// A part ends wherever workitems meet. What one part computes and another one needs is kept in a
// slot for each workitem; what is the same for all workitems is computed once, between the parts.
// Structured control that a meeting stands in is uniform, so it goes around whole parts; so do
// loops that gain by it (item_strides.h), whose last rounds are not for all workitems when they
// lag.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "loom/ir/module.h"
#include "loom/target/llvm/item_strides.h"

namespace loom {

struct GroupPart {
  enum class Kind : uint8_t {
    Items,    // operations that each workitem runs by itself
    Uniform,  // one operation that is run once
    Meeting,  // one collective of the workgroup, or a barrier
    For,      // a loop around `inner` that all workitems run in step
    If,       // a choice between `inner` and `other`
  };
  Kind kind = Kind::Items;
  OpId op;                      // of all but Items
  int64_t lag = 0;              // For: how much more the loop's number is one workitem further in x
  std::vector<OpId> ops;        // of Items
  std::vector<OpId> again;      // Items: what is computed again in front of `ops`
  std::vector<ValueId> reads;   // Items: from slots, in first-use order
  std::vector<ValueId> writes;  // Items: to slots
  std::vector<GroupPart> inner;
  std::vector<GroupPart> other;

  // The part of items that passes on what the loop carries, if one is the last of the round.
  const GroupPart* yielding() const {
    const bool yields = kind == Kind::For && !inner.empty() && inner.back().kind == Kind::Items;
    return yields ? &inner.back() : nullptr;
  }
};

struct GroupPlan {
  std::vector<GroupPart> parts;
  // By ValueId index: the value lives in a slot of each workitem. All others that are used between
  // parts were computed once.
  std::unordered_set<uint32_t> slots;
  std::vector<ValueId> slot_order;  // the same, as they first appear
  // By ValueId index: the operation that computes it again wherever it is used. Numbers and places
  // of workitems are cheaper made than kept, and LLVM sees how they grow.
  std::unordered_map<uint32_t, OpId> again;
  std::unordered_map<uint32_t, size_t> again_rank;  // their order, by OpId index

  // What to run, in order, for a value to be there, as far as it is computed again.
  std::vector<OpId> chain(const Module& module, std::span<const ValueId> values) const;
};

// The lanes of the kernel's subgroups: what its target record says, else 1.
uint64_t subgroup_lanes(const Module& module, OpId kernel);
// A collective of subgroups.
bool is_subgroup_collective(OpKind kind);

// Whether the kernel's workitems meet anywhere, calls that are inlined included.
bool workitems_meet(const Module& module, OpId kernel);

// Whether some loop of the kernel gains by being run in step.
bool has_loops_in_step(const Module& module, OpId kernel, const WorkgroupSize& size);

// Why a kernel cannot be run in parts, and where.
struct GroupRefusal {
  OpId op;
  std::string_view detail;
};
// `kernel` is verified and its body present.
std::optional<GroupPlan> plan_group(const Module& module, OpId kernel, const WorkgroupSize& size,
                                    GroupRefusal& refusal);

}  // namespace loom
