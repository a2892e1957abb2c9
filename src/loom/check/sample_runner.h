// Runs single samples.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "loom/check/compare.h"
#include "loom/check/launcher.h"
#include "loom/check/plan.h"
#include "loom/check/tensor.h"
#include "loom/diag/diagnostic.h"
#include "loom/interp/interp.h"
#include "loom/runtime/parameters/parameter_file.h"

namespace loom::check {

enum class Outcome : uint8_t { Passed, Failed, Skipped, Unplannable };
std::string_view outcome_name(Outcome outcome);

// What all samples of a run have in common. Everything it points to outlives the runner.
struct RunContext {
  const Module* module = nullptr;
  Launcher* launcher = nullptr;  // null: the interpreter runs launches
  InterpOptions interp;          // of the device; `tables` is not looked at
  DeviceTraits device;
  const ParameterSet* parameters = nullptr;    // of programs; null: there are none
  std::map<std::string, std::string> oracles;  // command by name
  std::string output_folder;   // for written files and failure artifacts; empty: where it stands
  bool keep_failures = false;  // writes what a failed expectation compared
  std::string rerun;           // the command line, without the choice of a sample
};

struct SampleResult {
  Outcome outcome = Outcome::Passed;
  Diagnostics diagnostics{1000};          // why it is not passed
  std::array<uint64_t, 2> work = {0, 0};  // that the case states, by WorkUnit
};

// Samples one after the other; memory is kept between them. One thread.
class SampleRunner {
 public:
  explicit SampleRunner(const RunContext& context);

  SampleResult run(const Case& of, uint64_t ordinal);

 private:
  const RunContext& context_;
  InterpTables tables_;
  Arena arena_;
};

}  // namespace loom::check
