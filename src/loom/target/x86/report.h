// Compile reports of x86-64 code.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "loom/report/report.h"
#include "loom/target/x86/compile.h"

namespace loom {

// compile_x86(), which also tells what it made: the same bytes, and in `report` the identity of the
// target and an entry for the output, each kernel and each function called out of line. Facts of
// machine code are there for objects and assembly. Costs about as much again as the compilation.
std::optional<std::string> compile_x86_reported(const Module& module, std::span<const OpId> kernels,
                                                OutputForm form, const X86Options& options,
                                                Report& report, Diagnostics& diagnostics);

// Adds what template selection decided to the entries of the kernels and functions, or to the
// module's where what held the application has none.
void report_templates(const Module& module, std::span<const TemplateChoice> choices,
                      Report& report);

// "object", "asm", "llvm-ir", "llvm-bitcode"
std::string_view output_form_name(OutputForm form);

}  // namespace loom
