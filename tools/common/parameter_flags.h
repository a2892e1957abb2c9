// The flag that names files with parameters of programs.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "common/cli.h"
#include "loom/runtime/parameters/parameter_file.h"

namespace loom {

struct ParameterFlags {
  std::vector<std::string> files;  // [%root=]FILE

  void declare(CLI::App& app);
  // Opens the files. A root that `takes` does not accept is RUN/014, said of `program`. False after
  // reporting.
  bool open(Tool& tool, const std::function<bool(std::string_view root)>& takes,
            std::string_view program, ParameterSet& set) const;
};

}  // namespace loom
