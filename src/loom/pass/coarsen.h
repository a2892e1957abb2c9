// Fewer, larger workgroups.
#pragma once

#include <cstdint>

#include "loom/pass/pass_context.h"

namespace loom {

// Whether one workgroup of the kernel can do the work of `factor` consecutive ones along x: its
// workgroups have one workitem each and neither synchronize nor ask how many there are, and the
// count along x is exact or a multiple of the factor by the kernel's contract.
bool can_coarsen(const Module& module, OpId kernel, uint32_t factor);
// Puts the body into a loop over the workgroups that it stands for; where the count is exact, the
// last one stops at it.
void coarsen(Module& module, OpId kernel, uint32_t factor);

}  // namespace loom
