// The launch configuration of kernels as a companion of their code (`.loomlaunch`): what turns a
// workload into workgroup counts and sizes, without source and without a kernel body.
//
// A companion (docs/formats/loomlaunch.md) is stripped bytecode (bytecode/bytecode.h) of a module
// that holds nothing but pure functions. There is one public function a kernel, under the kernel's
// symbol: workload arguments to six `index` results, three workgroup counts and three workgroup
// sizes. The others are what these call and what could not be made part of them. Equal
// configurations are equal bytes. Configuration is bound, and what is known of the target is
// decided.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "loom/diag/diagnostic.h"
#include "loom/dialect/target_info.h"
#include "loom/ir/module.h"

namespace loom {

// Why a module is no companion; null where it is one.
const char* launch_config_problem(const Module& module);

// `kernels` are `kernel.def` operations of the linked module, to which functions are added. Nothing
// when an error was reported (COMMAND/012 for a fact of the target that is not known).
std::optional<std::string> write_launch_config(Module& module, std::span<const OpId> kernels,
                                               const TargetFacts& target, Diagnostics& diagnostics);

}  // namespace loom
