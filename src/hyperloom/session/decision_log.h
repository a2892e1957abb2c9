// decisions.jsonl: what was decided, in order, each decision once.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <unordered_set>

#include "hyperloom/core/json.h"

namespace hyperloom::session {

// Rows {seq, key, id, decision, reason, ...}, one JSON object a line. Threads: one at a time.
class DecisionLog {
 public:
  // Takes up the file if it is there. A last line without its end, which a kill leaves behind, is
  // cut off. Errors: "unreadable_file", "unwritable_file", "invalid_json" naming the line.
  static Result<DecisionLog> open(std::filesystem::path path);

  // Appends the row, synced, unless a row with this key is there. Errors: "unwritable_file".
  Result<void> append(const std::string& key, Json row);

 private:
  explicit DecisionLog(std::filesystem::path path) : path_(std::move(path)) {}
  std::filesystem::path path_;
  std::unordered_set<std::string> keys_;
  uint64_t last_seq_ = 0;
};

}  // namespace hyperloom::session
