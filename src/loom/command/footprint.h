// How much storage the views inside of kernels reach, as far as that is exact.
#pragma once

#include <span>
#include <vector>

#include "loom/command/launch_values.h"
#include "loom/command/program_view.h"
#include "loom/ir/module.h"

namespace loom {

// A view over the storage of a launch argument.
struct LaunchView {
  uint32_t argument = 0;
  uint32_t offset = 0;            // number of a value, in bytes
  std::vector<int64_t> fixed;     // extents that the type states
  std::vector<uint32_t> extents;  // numbers of the values that are the others
  uint32_t element_bytes = 0;
  uint64_t alignment = 1;
};

// What the views in a kernel's body reach.
struct KernelNeeds {
  std::vector<StorageNeed> exact;   // by launch argument: of views that every launch has alike
  std::vector<LaunchValue> values;  // operands before their users
  std::vector<LaunchView> views;    // those that follow from the launch's scalars
};

// What the view types of launch arguments and the buffer.view operations over launch arguments
// need, wherever offset and extents are constant or follow from scalar launch arguments. A view
// under a branch counts, taken or not. The body of the kernel must be open.
KernelNeeds kernel_needs(const Module& module, OpId kernel);

// What one launch with these arguments reaches, by launch argument.
std::vector<StorageNeed> launch_needs(const KernelNeeds& kernel,
                                      std::span<const Argument> arguments);

// The needs of each dispatched kernel, moved to where its arguments lie.
struct ProgramNeeds {
  std::vector<StorageNeed> bindings;      // by binding row of the program
  std::vector<uint64_t> parameter_bytes;  // by parameter row
  std::vector<StorageNeed> transients;    // by transient row
};

// `kernels` is by entry slot; null where nothing serves it.
ProgramNeeds program_needs(const ProgramView& program, std::span<const KernelNeeds* const> kernels);

}  // namespace loom
