// What is written down of one attempt.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "hyperloom/core/json.h"
#include "hyperloom/optimize/backend.h"

namespace hyperloom::optimize {

// completed (0), timeout (124), else failed; partial for a timeout or failure that left something
// verified. Three or more lines of failed authentication: failed, whatever else there is.
std::string attempt_status(int returncode, bool has_evidence, std::string_view output);

// A finished attempt: its row in optimization_attempts.jsonl, and what verification goes on with.
struct AttemptRecord {
  std::string attempt_id;
  std::string backend;
  std::string status;
  std::string error_type;
  std::string message;
  Outcome outcome;
  Json bundle;  // null without a winner, or where it is configuration alone
  std::filesystem::path workspace;
  std::filesystem::path prompt_path;
  std::filesystem::path output_path;
  std::string output_tail;  // the last 4000 bytes
  double elapsed_s = 0;

  // Completed or partial, with something that was measured.
  bool usable() const { return (status == "completed" || status == "partial") && outcome.measured; }
  Json to_row() const;
};

// prompts/<attempt_id>.md: source, shapes, contract, benchmark cases, hardware, priorities, ideas.
std::string prompt_text(const Attempt& attempt, std::string_view source, const Json& device_peaks);

}  // namespace hyperloom::optimize
