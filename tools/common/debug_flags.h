// The flags that make compiled kernels visible to a debugger and a profiler.
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

// The flag that makes compiled kernels visible to perf.
struct PerfFlag {
  std::string folder;

  void declare(CLI::App& app);
};

}  // namespace loom
