// Builds kernel requests: self-contained rooted modules in bytecode.
#pragma once

#include <array>

#include "loom/command/prepare.h"
#include "loom/ir/module.h"

namespace loom {

// The request for one configured kernel: the definition under its own symbol, retained, with the
// functions and configuration it reaches. Where the workgroup size depends on the workload, `size`
// replaces it in the configuration region.
KernelRequest make_request(const Module& module, OpId kernel, bool fixed_size,
                           const std::array<uint32_t, 3>& size);

}  // namespace loom
