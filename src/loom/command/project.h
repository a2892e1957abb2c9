// Projects kernels to their launch configuration and rewrites launches in place.
#pragma once

#include <array>
#include <map>
#include <span>
#include <string>

#include "loom/diag/diagnostic.h"
#include "loom/ir/module.h"

namespace loom {

// For each kernel that `programs` launch, adds the pure private function `@k$config` (workload
// arguments to three workgroup counts, and three sizes more where the sizes depend on the workload)
// and replaces each `kernel.launch` by a call of it and a `kernel.dispatch`, at the same place.
// Reads contracts and configuration regions, never a device body. A launched declaration is
// LOWERING/050. Returns false when it emitted an error.
bool project_launches(Module& module, std::span<const OpId> programs, Diagnostics& diagnostics);

// The workgroup size of a kernel where it does not depend on the workload; nothing otherwise.
std::optional<std::array<uint32_t, 3>> fixed_workgroup_size(const Module& module, OpId kernel);

}  // namespace loom
