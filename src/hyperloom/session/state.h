// The session's durable facts: one JSON document, state.json.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "hyperloom/core/json.h"

namespace hyperloom::session {

// The document that `text` holds, with the fields that every reader may expect. Errors:
// "invalid_json", "unknown_schema_version", "invalid_state" naming the field.
Result<Json> parse_state(std::string_view text, const std::string& name);

// The only writer of state.json in this process. Field names are those of the behaviour
// specification ("kernel_opt_task_attempts", "pending_kernel_integrations", "current_best", ...).
// Each field has one owner: the room whose README lists it.
//
// Threads: any. update() and read() hold one lock while their function runs, so the functions are
// short, never block and call neither of the two.
class SharedState {
 public:
  static constexpr int kSchemaVersion = 5;

  // A new document with `schema_version`, `revision` 0 and the fields every reader may expect; it
  // is on disk when this returns. Errors: "state_exists", "unwritable_file".
  static Result<SharedState> create(std::filesystem::path path, Json initial);
  // Errors: "unreadable_file", those of parse_state().
  static Result<SharedState> load(std::filesystem::path path);
  SharedState(SharedState&&) noexcept;
  SharedState& operator=(SharedState&&) noexcept;
  ~SharedState();

  // Changes the document and makes it durable: a copy is changed, `revision` grows by one, the file
  // is replaced and synced, and only then memory moves on. When `change` throws or the disk
  // refuses, memory and file are what they were. `step` names the fault point. Errors:
  // "unwritable_file"; "state_conflict" when the file on disk is not the revision that was last
  // written here.
  Result<void> update(std::string_view step, const std::function<void(Json&)>& change);
  // The document as it is; the reference ends with `look`.
  void read(const std::function<void(const Json&)>& look) const;
  // A copy of one field, null when absent.
  Json get(std::string_view field) const;
  uint64_t revision() const;

 private:
  struct Impl;
  explicit SharedState(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace hyperloom::session
