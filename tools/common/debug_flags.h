// The flag that makes compiled kernels visible to a debugger.
#pragma once

#include <string>

#include "common/cli.h"

namespace loom {

struct DebugFlags {
  std::string debugger = "auto";

  void declare(CLI::App& app);
  // Whether kernels get line tables and are announced: "auto" means when a debugger runs us.
  bool wanted() const;
};

}  // namespace loom
