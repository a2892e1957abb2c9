// How much storage the views inside of kernels reach, as far as that is exact.
#pragma once

#include <span>
#include <vector>

#include "loom/command/plan.h"
#include "loom/ir/module.h"
#include "loom/runtime/program.h"

namespace loom {

// By launch argument of the kernel: what its view type and the buffer.view operations over it need,
// wherever offset and extents are constant. A view under a branch counts, taken or not. The body of
// the kernel must be open.
std::vector<StorageNeed> kernel_needs(const Module& module, OpId kernel);

// By binding row of the program: the needs of each dispatched kernel, moved to where its arguments
// lie in the bindings. `kernels` is by entry slot.
std::vector<StorageNeed> binding_needs(const PreparedProgram& program,
                                       std::span<const std::vector<StorageNeed>> kernels);

}  // namespace loom
