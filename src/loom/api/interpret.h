// Runs a linked command program on the reference interpreter.
#pragma once

#include <span>
#include <string_view>

#include "loom/interp/interp.h"
#include "loom/runtime/parameters/parameter_file.h"

namespace loom {

// Runs `root` once over the storage of its bindings, which are found by name; a binding that only
// holds parameters has none. Specializations have the values that the root's `where` list fixes.
// The kernels' bodies must be loaded (bytecode/bytecode.h). Besides what run_program() reports:
// RUN/004 and RUN/005 for parameters.
bool interpret_program(const Module& linked, std::string_view root,
                       std::span<const InterpStorage> storage, const ParameterSet& parameters,
                       const InterpOptions& options, Diagnostics& diagnostics);

}  // namespace loom
