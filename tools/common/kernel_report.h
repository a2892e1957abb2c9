// What the compiler says about kernels that run in this process.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "common/link_flags.h"
#include "loom/ir/module.h"
#include "loom/link/link.h"
#include "loom/target/llvm/options.h"

namespace loom {

// The compile report, as JSON with details, of those kernels of the program as the JIT compiles
// them for this machine. `link` is how the program came about. Nothing where there is none, or
// where one of them has no code.
std::optional<std::string> kernel_report(const LinkFlags& link, const LinkInput& program,
                                         std::span<const std::string> kernels,
                                         DenormalMode denormals);

}  // namespace loom
