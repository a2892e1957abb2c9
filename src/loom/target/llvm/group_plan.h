// How a kernel whose workitems meet is run by one thread: its body as parts, each of which runs for
// all workitems before the next one begins.
//
// A part ends wherever workitems meet. What one part computes and another one needs is kept in a
// slot for each workitem; what is the same for all workitems is computed once, between the parts.
// Structured control that a meeting stands in is uniform, so it goes around whole parts; so do
// loops that gain by it (item_strides.h), whose last rounds are not for all workitems when they
// lag. Where only the lanes of one subgroup are sure to go the same way, or to go on after an exit,
// the subgroups run such parts one after the other.
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
    Items,      // operations that each workitem runs by itself
    Uniform,    // one operation that is run once
    Meeting,    // one collective, or a barrier
    For,        // a loop around the first way that all run in step
    While,      // the same around the first way, which decides, and the second one
    If,         // a choice between the first and the second way
    Switch,     // a choice between all ways
    Exit,       // all go the first way and end, or none
    Leave,      // those that end do what is in `ops`; only within Subgroups
    Subgroups,  // the first way, for each subgroup by itself
  };
  Kind kind = Kind::Items;
  OpId op;                      // of all but Items, Leave and Subgroups
  int64_t lag = 0;              // For: how much more the loop's number is one workitem further in x
  std::vector<OpId> ops;        // of Items and Leave
  std::vector<OpId> again;      // with ops: what is computed again in front of them
  std::vector<ValueId> reads;   // with ops: from slots, in first-use order
  std::vector<ValueId> writes;  // with ops: to slots
  // The regions of `op`, in order; missing ones are empty.
  std::vector<std::vector<GroupPart>> ways;

  // The part of items that passes on what the loop carries, if one is the last of the round.
  const GroupPart* yielding() const {
    if (kind != Kind::For || ways[0].empty()) return nullptr;
    return ways[0].back().kind == Kind::Items ? &ways[0].back() : nullptr;
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
  bool leaves = false;                              // some part is a Leave

  // What to run, in order, for a value to be there, as far as it is computed again.
  std::vector<OpId> chain(const Module& module, std::span<const ValueId> values) const;
};

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
