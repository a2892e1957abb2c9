// A set of kernels as one shared object with a C header.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "loom/aot/kernel_set.h"
#include "loom/target/x86/compile.h"
#include "loom/target/x86/cpu_levels.h"

namespace loom {

// As compile_x86().
using CompileKernels =
    std::function<std::optional<std::string>(const Module& module, std::span<const OpId> kernels,
                                             const X86Options& options, Diagnostics& diagnostics)>;

struct LibraryOptions {
  std::string file_name;                // of the shared object, which is also its name when loading
  std::vector<const CpuLevel*> levels;  // from the lowest, at least one
  DenormalMode denormals = DenormalMode::Keep;
  // Makes the object of a level, such as one from a cache; compile_x86() where it is empty.
  CompileKernels compile;
};

struct KernelLibrary {
  std::string shared_object;
  std::string header;
};

// x86-64-v2, x86-64-v3 and x86-64-v4.
std::vector<const CpuLevel*> default_levels();

// Compiles each kernel (`kernel.def` operations of the verified module, whose templates are
// expanded; at least one) once for each level, by the optimizing tier, and links the variants
// behind their export names. The library needs no more than the C library's memory functions, and
// of `libm.so.6` what the code of its levels calls. The bytes depend only on the arguments and this
// build of the compiler. Nothing when an error was reported: TARGET/069, COMMAND/012, LOWERING/001,
// IO/002 of the temporary folder. Functions are added to `module`.
std::optional<KernelLibrary> compile_library(Module& module, std::span<const OpId> kernels,
                                             const LibraryOptions& options,
                                             Diagnostics& diagnostics);

}  // namespace loom
