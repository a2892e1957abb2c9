// Reads one module, whatever its encoding, up to the point where it can be linked.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "loom/diag/diagnostic.h"
#include "loom/ir/module.h"

namespace loom {

enum class InputForm : uint8_t { Auto, Text, Bytecode };

struct LoadOptions {
  InputForm form = InputForm::Auto;  // Auto looks at the first bytes
  // Leaves kernel bodies of bytecode encoded (bytecode/bytecode.h); text is always read whole.
  bool defer_kernel_bodies = false;
};

// Parses or decodes, verifies, and makes the access facets of kernels known. `path` is what
// diagnostics call the file. Nothing when an error was reported.
std::optional<Module> load_module(SourceFiles& files, std::string bytes, std::string_view path,
                                  Diagnostics& diagnostics, const LoadOptions& options = {});

}  // namespace loom
