// Kernels to x86-64 code.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "loom/diag/diagnostic.h"
#include "loom/ir/module.h"
#include "loom/pass/select_templates.h"
#include "loom/target/llvm/notes.h"
#include "loom/target/llvm/options.h"

namespace loom {

struct X86Options {
  std::string cpu;  // LLVM's name; "" is generic x86-64, "native" the machine that compiles
  std::string
      features;       // LLVM's flags of what a named `cpu` has besides: "+avx512vnni,+avx512bf16"
  int opt_level = 2;  // 0 to 3
  DenormalMode denormals = DenormalMode::Keep;
  // Not empty: the object is one of several with the same kernels (variants.h). The text stands
  // behind the name of each entry, which only the link sees, and the object states no contracts.
  std::string variant;
};

// What template selection knows of the target: a workitem is a subgroup of its own.
SelectOptions x86_selection();

// "x86_64" or "x86_64:CPU". An unknown family or CPU is TARGET/001 at `location`.
std::optional<X86Options> parse_x86_target(std::string_view text, Location location,
                                           Diagnostics& diagnostics);

// All that decides the bytes of compile_x86() besides the module, the kernels and this build of the
// compiler.
std::string x86_identity(OutputForm form, const X86Options& options);

// Compiles the kernels (`kernel.def` operations of the verified module; none means all of them) and
// the functions they call. Each kernel becomes a LoomKernelEntry (kernel_abi.h) under its export
// name, or else its symbol. Objects are position independent and need libm. The bytes depend only
// on the arguments, and with "native" on the machine. On failure the diagnostics say why. Several
// threads may compile at once, each with its own module. `notes` may be null.
std::optional<std::string> compile_x86(const Module& module, std::span<const OpId> kernels,
                                       OutputForm form, const X86Options& options,
                                       Diagnostics& diagnostics, CodegenNotes* notes = nullptr);

}  // namespace loom
