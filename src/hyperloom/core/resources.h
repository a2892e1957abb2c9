// Files that ship with the program: prompt templates and the like.
#pragma once

#include <filesystem>
#include <string>

#include "hyperloom/core/environment.h"
#include "hyperloom/core/error.h"

namespace hyperloom {

// Where the kernel tools' files are: HYPERLOOM_KERNEL_AGENT_ROOT, else share/hyperloom beside the
// folder of the running program. Errors: "kernel_agent_root_missing".
Result<std::filesystem::path> kernel_agent_root(const Environment& environment);

// The file `name` (relative, without ".."), from KERNELFORGE_PROJECT_ROOT where it has one and else
// from kernel_agent_root(). Errors: "kernel_agent_root_missing", "resource_missing".
Result<std::filesystem::path> find_resource(const Environment& environment,
                                            const std::string& name);

}  // namespace hyperloom
