// The flags that every program which links modules shares: inputs, libraries, roots,
// specializations and configuration.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/cli.h"
#include "loom/ir/module.h"
#include "loom/link/link.h"

namespace loom {

struct LinkFlags {
  std::vector<std::string> inputs;
  std::vector<std::string> libraries;
  std::vector<std::string> roots;  // as written, with or without '@'
  std::vector<std::string> specialize;
  std::vector<std::string> config;
  std::vector<std::string> config_files;

  void declare(CLI::App& app);
  // The same for programs that choose the roots themselves.
  void declare_without_roots(CLI::App& app);
  // Root symbols without '@'.
  std::vector<std::string> root_names() const;
};

// `@name` and `name` are the same symbol on a command line.
std::string symbol_from_flag(std::string_view text);

// The modules of the flags, read and verified. Reports and returns nothing when one is bad.
struct LoadedInputs {
  std::vector<LinkInput> inputs;
  LibraryIndex libraries;
};
std::optional<LoadedInputs> load_inputs(Tool& tool, const LinkFlags& flags,
                                        const LoadOptions& options = {});

// Link options with the flags' roots, specializations and configuration filled in. Reports and
// returns nothing when a configuration flag or file is bad.
std::optional<LinkOptions> link_options(Tool& tool, const LinkFlags& flags);

}  // namespace loom
