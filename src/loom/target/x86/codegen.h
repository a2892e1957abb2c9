// One configured code generator for x86-64.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>

#include "loom/diag/diagnostic.h"
#include "loom/ir/module.h"
#include "loom/target/llvm/notes.h"
#include "loom/target/llvm/options.h"

namespace loom {

struct CodegenOptions {
  std::string cpu;     // as in X86Options
  int opt_level = 2;   // of the machine code, 0 to 3
  std::string passes;  // an LLVM pass pipeline; empty for none
  DenormalMode denormals = DenormalMode::Keep;
  // The named kernel is a jump to the code that `kReplaceableTarget` points to, its own at first.
  bool replaceable = false;
  std::string features;  // as in X86Options
  std::string variant;   // as in X86Options
};

// A pointer-sized variable of an object with a replaceable kernel.
inline constexpr const char* kReplaceableTarget = "loom_kernel_target";

// Expensive to make (about as much as a small kernel), reusable, and used by one thread at a time.
class X86Codegen {
 public:
  // Null, with a diagnostic, when the machine cannot be described.
  static std::unique_ptr<X86Codegen> create(const CodegenOptions& options,
                                            Diagnostics& diagnostics);
  ~X86Codegen();

  // With `name`, which then names the only kernel, in place of the kernels' own names. `notes` may
  // be null.
  std::optional<std::string> generate(const Module& module, std::span<const OpId> kernels,
                                      const std::string& name, OutputForm form,
                                      Diagnostics& diagnostics, CodegenNotes* notes = nullptr);

  // The object of a module in LLVM's text, after the passes. The text is ours: a mistake in it is
  // an internal failure.
  std::optional<std::string> assemble(const std::string& text, Diagnostics& diagnostics);

 private:
  struct Machine;
  explicit X86Codegen(std::unique_ptr<Machine> machine);
  std::unique_ptr<Machine> machine_;
};

// What the section `.loom.kernels` of an object says: a line "name<TAB>(argument types)" for each
// entry, so that whoever loads the object can tell what the entry takes.
inline constexpr const char* kContractSection = ".loom.kernels";
std::string kernel_contracts(const Module& module, std::span<const OpId> kernels,
                             std::span<const std::string> names);

// What a CPU name of CodegenOptions stands for here, with LLVM's version: equal texts generate
// equal code.
std::string x86_cpu_identity(const std::string& cpu);

// "LLVM 19.1.7"
std::string code_generator_name();

// The processor's name, and where it is detected its features as LLVM's flags, else "".
struct X86Cpu {
  std::string name;
  std::string features;
};
X86Cpu x86_cpu(const std::string& cpu);

// A 64-bit CPU that LLVM knows.
bool is_known_x86_cpu(const std::string& cpu);

}  // namespace loom
