// What a set of kernels needs from code generation, decided before any code is built.
//
// The plan names everything that cannot be lowered as one diagnostic, so that lowering itself
// cannot fail on a verified module.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "loom/diag/diagnostic.h"
#include "loom/dialect/numeric.h"
#include "loom/dialect/op_kind.h"
#include "loom/target/llvm/fragment_plan.h"
#include "loom/target/llvm/group_plan.h"

namespace loom {

// Nested structured operations, calls that are inlined included. LLVM's own passes recurse over
// loop nests, so deeper programs are refused.
inline constexpr unsigned kMaxNesting = 256;
// Operations of one kernel after inlining.
inline constexpr uint64_t kMaxInlinedOps = 2'000'000;
// Of one vector; each lane may become instructions of its own.
inline constexpr uint64_t kMaxVectorLanes = 4096;
// Workitems of a workgroup in which they meet.
inline constexpr uint64_t kMaxMeetingItems = 1024;
// Private storage of one kernel or function.
inline constexpr uint64_t kMaxPrivateBytes = 1 << 20;
inline constexpr int64_t kMaxPrivateAlignment = 4096;

struct KernelPlan {
  OpId kernel;
  // Workgroup size along each axis, where the launch configuration fixes it by itself.
  std::array<std::optional<uint64_t>, 3> size;
  // Where workitems meet, or gain by running loops in step, and there are several of them.
  std::optional<GroupPlan> group;
  // Where they do not.
  std::optional<GroupGuard> guard;

  uint64_t subgroup_lanes = 1;

  // Without functions that are called out of line.
  uint64_t private_bytes = 0;    // of a workitem
  uint64_t workgroup_bytes = 0;  // that the workitems of a workgroup share

  // The workitems of a workgroup, where all of its size is fixed.
  std::optional<uint64_t> items() const;
};

struct LoweringPlan {
  std::vector<KernelPlan> kernels;
  std::vector<OpId> functions;  // called out of line, in order of their first call
  // By OpId index of a vector.load: the family of the records that it loads.
  std::unordered_map<uint32_t, std::string_view> record_loads;
  // By OpId index: of fragments that are loaded and stored, and of vector.mma.
  std::unordered_map<uint32_t, FragmentExtents> fragments;
  std::unordered_map<uint32_t, ProductExtents> products;
  std::unordered_map<uint32_t, uint64_t> alloca_bytes;  // by OpId index of the buffer.alloca
  uint64_t largest_body = 0;  // operations of the largest function after inlining
};

// The target that asks.
struct LoweringTarget {
  std::string_view name;  // for the diagnostics
};

// `kernels` are `kernel.def` operations of a verified module whose bodies are present.
std::optional<LoweringPlan> plan_lowering(const Module& module, std::span<const OpId> kernels,
                                          const LoweringTarget& target, Diagnostics& diagnostics);

// The call is replaced by the callee's body.
bool is_inlined_call(const Module& module, OpId call);
// The extents that the region's arguments introduce by naming them, in order of appearance.
std::vector<ValueId> introduced_extents(const Module& module, RegionId region);
// The value of a `config.get`, when its key has one.
std::optional<ScalarValue> config_value(const Module& module, OpId get);

}  // namespace loom
