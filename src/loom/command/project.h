// Projects kernels to their launch configuration and rewrites launches in place.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <span>

#include "loom/dialect/target_info.h"
#include "loom/ir/module.h"
#include "loom/pass/pass_context.h"

namespace loom {

// What preparation knows of one kernel without opening its body.
struct ProjectedKernel {
  OpId kernel;  // the definition, or an external entry's declaration
  OpId config;  // the pure function `@k$config`; invalid for an external entry
  // Workgroup size where it does not depend on the workload. Otherwise `@k$config` returns it
  // behind the counts and each dispatch carries it in its workgroup_size clause.
  std::optional<std::array<uint32_t, 3>> fixed_size;
  bool uses_target = false;  // a target fact was folded into the configuration
};
using Projection = std::map<StringId, ProjectedKernel>;  // by kernel symbol

// For each kernel that `programs` launch, adds the pure private function `@k$config` (workload
// arguments to three workgroup counts, and three sizes more where they depend on the workload) and
// replaces each `kernel.launch` by a call of it and a `kernel.dispatch`, at the same place. Reads
// contracts and configuration regions, never a device body. A launched declaration is
// LOWERING/050. Nothing when it emitted an error.
// A configuration that needs a fact of the target which `target` does not know is COMMAND/012.
std::optional<Projection> project_launches(PassContext& context, std::span<const OpId> programs,
                                           const TargetFacts& target);
// Adds the same function for one kernel, always with three counts and three sizes as its results;
// invalid when it emitted an error.
OpId project_config(PassContext& context, OpId kernel, const TargetFacts& target);

}  // namespace loom
