// The LoomKernelEntry around a kernel's body.
#pragma once

#include <string>

#include "loom/target/llvm/body.h"
#include "loom/target/llvm/options.h"

namespace loom {

// Emits the function `name` into the lowering's LLVM module.
void emit_entry(const Module& module, const KernelPlan& plan, const std::string& name,
                DenormalMode denormals, llvm::Module& target, llvm::IRBuilderBase& builder,
                BodyLowering& lowering);

}  // namespace loom
