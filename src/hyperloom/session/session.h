// One optimization session on disk, held by one process at a time.
#pragma once

#include <memory>
#include <string>

#include "hyperloom/core/json.h"
#include "hyperloom/session/layout.h"
#include "hyperloom/session/state.h"

namespace hyperloom::session {

// Errors: "invalid_json", "unknown_schema_version", "invalid_manifest" naming the field.
Result<Json> parse_manifest(std::string_view text, const std::string& name);

// Holds the session's lock for as long as it lives (flock on a file opened no-follow, mode 0600,
// which says {pid, host, started_at, heartbeat_at} of its owner). Move-only.
class Session {
 public:
  // Makes the folders, manifest.json {schema_version, session_id, created_at, workload, options,
  // version} and state.json. Errors: "session_exists" (use resume), "session_already_running" with
  // the owner's pid and host, "unwritable_file".
  static Result<Session> create(const Layout& layout, const Json& workload, const Json& options);
  // Takes up one that create() made. Errors: "session_not_found", "session_already_running", those
  // of parse_manifest(), SharedState::load and DecisionLog::open.
  static Result<Session> resume(const Layout& layout);
  // For `status` and `report`: the documents of a session, without its lock.
  struct View {
    Json manifest;
    Json state;
    bool running = false;
    Json owner;  // of the lock, when running
  };
  static Result<View> look(const Layout& layout);

  Session(Session&&) noexcept;
  Session& operator=(Session&&) noexcept;
  ~Session();

  const Layout& layout() const;
  const Json& manifest() const;
  SharedState& state();
  void heartbeat();

  // Appends one row to decisions.jsonl, synced: {seq, id, decision, reason, ...}. A row whose `key`
  // was logged before is not repeated, so that a step may be taken again after a kill.
  Result<void> log_decision(const std::string& key, Json row);

 private:
  struct Impl;
  explicit Session(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace hyperloom::session
