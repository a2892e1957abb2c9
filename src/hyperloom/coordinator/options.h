// How a session is run: what the command line decides, kept in the manifest.
#pragma once

#include <cstdint>
#include <string>

#include "hyperloom/core/json.h"

namespace hyperloom::coordinator {

struct Options {
  double budget_seconds = 2 * 3600;
  double closing_grace_seconds = 60;  // for the report, after the budget
  double kernel_cap_seconds = 0;      // absolute cap of KERNEL; 0 for none
  bool kernel_enabled = true;         // --no-kernel
  bool auto_kernel_opt = true;        // --no-auto-kernel-opt
  bool allow_empty_kernel_shape = false;
  std::string kernel;  // only this one, by symbol; empty: whatever is worth it
  uint64_t seed = 1;
  bool strict_phase = true;
  std::string transcript;  // file that is replayed in place of the scripted policy
  std::string record;      // file that measurements are recorded in
  std::string replay;      // file that they are answered from
};

Json to_json(const Options& options);
// Fields that are absent keep their defaults. Errors: "invalid_options" naming the field.
Result<Options> options_from(const Json& json);

// "90", "90s", "15m", "2h" as seconds. Errors: "invalid_duration".
Result<double> parse_duration(const std::string& text);

}  // namespace hyperloom::coordinator
