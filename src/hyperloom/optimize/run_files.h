// The files of one run of a tool: what it says, and how far it is.
#pragma once

#include <deque>
#include <filesystem>
#include <mutex>
#include <set>
#include <string>

#include "hyperloom/core/error.h"
#include "hyperloom/core/json.h"
#include "hyperloom/session/layout.h"

namespace hyperloom::optimize {

inline constexpr const char* kTool = "kernel_optimization";

// "ko-" or "<backend>-" and eight digits of the sha256 of what it is for: the same again after a
// kill, another one for each attempt.
std::string derived_id(const std::string& prefix, const std::string& session_id,
                       const std::string& task_key, int64_t ordinal);

// Writes `document` durably, with a fault point named `step` in front. Makes missing folders.
// Errors: "unwritable_file".
Result<void> save_json(const std::string& step, const std::filesystem::path& path,
                       const Json& document);
// The same for text.
Result<void> save_text(const std::string& step, const std::filesystem::path& path,
                       std::string_view text);

// logs/<tool>/<run_id>.log and status/<tool>/<run_id>.json. Threads: any.
class RunFiles {
 public:
  RunFiles(const session::Layout& layout, std::string run_id, const std::string& kernel_id);

  // A line of the log. A disk that refuses it is noticed by the next status.
  void say(const std::string& line);
  // `current_step`: load_candidate, run_backends, verify_and_propose, done.
  Result<void> step(const std::string& current_step);
  // `state`: succeeded, failed, skipped.
  Result<void> end(const std::string& state, const std::string& error, const Json& artifact_paths);

  const std::string& run_id() const { return run_id_; }
  const std::filesystem::path& log_path() const { return log_path_; }
  const std::filesystem::path& status_path() const { return status_path_; }

 private:
  Result<void> save_locked();

  std::mutex mutex_;
  std::string run_id_;
  std::filesystem::path log_path_;
  std::filesystem::path status_path_;
  Json status_;
  std::deque<std::string> last_lines_;
  size_t offset_ = 0;
};

// Kernels that are worked on: their run says `running`, its process lives, and its log names them.
std::set<std::string> in_flight_ids(const session::Layout& layout);

// Appends a row to optimization_attempts.jsonl, unless the row of this attempt is there already
// because a kill came between the row and the ledger. Threads: any. Errors: "unwritable_file".
Result<void> append_attempt(const session::Layout& layout, const Json& row);

}  // namespace hyperloom::optimize
