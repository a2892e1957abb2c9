// The flags that describe a workload: a file of its own, or sources with roots and bindings.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "hyperloom/core/json.h"

namespace hyperloom::app {

struct WorkloadFlags {
  std::vector<std::string> files;
  std::vector<std::string> libraries;
  std::string root;
  std::vector<std::string> specialize;  // name=value
  std::vector<std::string> config;      // key=value
  std::vector<std::string> parameters;  // [%root=]FILE
  std::vector<std::string> inputs;      // %x=TYPE:FILE.npy
  std::vector<std::string> fills;       // %x=TYPE:VALUE
  std::vector<std::string> randoms;     // %x=TYPE[:LOW:HIGH]
  std::vector<std::string> outputs;     // %y=TYPE
  std::vector<std::string> scratches;   // %h=TYPE
  std::string device = "cpu";
  unsigned threads = 0;

  void declare(CLI::App& app);
  // As workload::open_workload() takes it. A single .json file is read, with its relative paths
  // taken from its folder. Errors: "invalid_workload" naming the flag, those of read_json.
  Result<Json> description() const;
};

}  // namespace hyperloom::app
