// The flags that loom-test and loom-bench share, and the module that they run.
#pragma once

#include <expected>
#include <optional>
#include <string>
#include <vector>

#include "common/cli.h"
#include "common/link_flags.h"
#include "common/parameter_flags.h"
#include "loom/check/test_run.h"

namespace loom {

struct CheckFlags {
  static constexpr double kDefaultTimeout = 300;
  LinkFlags link;  // without --root and --specialize
  std::string device;
  std::vector<std::string> sanitizers;
  std::optional<uint64_t> sample;
  std::string denormals = "keep";
  double timeout = kDefaultTimeout;
  ParameterFlags parameters;
  std::vector<std::string> oracles;
  std::string output_folder;

  void declare(CLI::App& app);
  // What this build cannot do ends here, before any work.
  std::optional<ExitCode> refuse(Tool& tool) const;
  // Nothing after reporting wrong usage. The cases are not filled in.
  std::optional<check::TestOptions> options(Tool& tool) const;
  // Opens the files that supply parameters to programs of the module. False after reporting.
  bool open_parameters(Tool& tool, const Module& module, check::TestOptions& options) const;
  // "cpu", or what the sanitizers need.
  std::string chosen_device() const;
  // The command line that runs the same again, without the choice of a case or sample.
  std::string command_line(const char* program) const;
};

// The cases of the inputs, or those that are named, with everything that they reach and their
// benchmarks. Reports and returns the exit status: wrong usage for a name that is no case.
std::expected<LinkInput, ExitCode> link_cases(Tool& tool, const CheckFlags& flags,
                                              const std::vector<std::string>& cases);

}  // namespace loom
