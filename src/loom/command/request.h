// Builds kernel requests: self-contained rooted modules in bytecode.
#pragma once

#include <array>

#include "loom/command/prepare.h"
#include "loom/ir/module.h"

namespace loom {

// The request for one configured kernel: the definition under its own symbol, retained, with the
// functions and configuration it reaches. Where the workgroup size depends on the workload, `size`
// replaces it in the configuration region.
//
// Applied families are replaced by exact calls where every target would decide alike; otherwise the
// request carries the implementations that are left to choose from. Nothing when that was an error.
std::optional<KernelRequest> make_request(const Module& module, OpId kernel, bool fixed_size,
                                          const std::array<uint32_t, 3>& size,
                                          Diagnostics& diagnostics);

}  // namespace loom
