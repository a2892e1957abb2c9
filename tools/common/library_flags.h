// The flags of kernels as one shared object with a C header.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/cli.h"
#include "loom/aot/library.h"

namespace loom {

struct LibraryFlags {
  std::string header;
  std::vector<std::string> levels;  // as written; empty for the default ones

  void declare(CLI::App& app);
  bool given() const { return !header.empty() || !levels.empty(); }

  // Why there is no library in the file `output` for `target`; nothing where there is one.
  std::optional<std::string> problem(const std::string& output, const std::string& target) const;
  LibraryOptions options(const std::string& output) const;
};

}  // namespace loom
