// Launch configurations as code.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "loom/aot/kernel_set.h"
#include "loom/target/x86/compile.h"

namespace loom {

// An object with an entry geometry_name() for each kernel: `args` holds the workload and then the
// address of six 64-bit numbers, into which it writes the workgroup counts and sizes along x, y and
// z. It is to be called for the workgroup 0 of one. Functions are added to `module`.
std::optional<std::string> compile_geometry(Module& module, std::span<const CKernel> kernels,
                                            const X86Options& options, Diagnostics& diagnostics);

}  // namespace loom
