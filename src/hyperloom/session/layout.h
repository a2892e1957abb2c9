// Where a session's files lie. Only names; nothing here touches the disk besides data_root().
#pragma once

#include <filesystem>
#include <string>

#include "hyperloom/core/environment.h"
#include "hyperloom/core/error.h"

namespace hyperloom::session {

namespace fs = std::filesystem;

// USER_DATA_PATH, else `shared` if that is a folder that may be written, else ./session; absolute.
fs::path data_root(const Environment& environment, const fs::path& shared = "/workspace/hyperloom");

// The trees of one session below its data root.
struct Layout {
  fs::path root;     // the data root
  std::string id;    // session id: letters, digits, '.', '_', '-', and not "." or ".."
  fs::path session;  // <root>/sessions/<id>, or where the caller put it

  // Errors: "invalid_session_id".
  static Result<Layout> make(fs::path root, std::string id);

  fs::path manifest() const { return session / "manifest.json"; }
  fs::path state() const { return session / "state.json"; }
  fs::path database() const { return session / "storage" / "coordinator.db"; }
  fs::path lock() const { return session / "session.lock"; }
  fs::path decision_log() const { return session / "decisions.jsonl"; }
  fs::path reports() const { return session / "reports"; }
  fs::path integration(const std::string& integration_id) const;
  fs::path lane(const std::string& lane, const std::string& task_id) const;

  // What the tools write: <root>/kernel-agent/runs/<id>.
  fs::path run() const { return root / "kernel-agent" / "runs" / id; }
  fs::path candidates() const { return run() / "kernel_candidates.json"; }
  fs::path attempts() const { return run() / "optimization_attempts.jsonl"; }
  fs::path prompt(const std::string& attempt_id) const;
  fs::path attempt_output(const std::string& attempt_id) const;
  fs::path verification(const std::string& kernel_id) const;
  fs::path result(const std::string& kernel_id) const;
  fs::path log(const std::string& tool, const std::string& run_id) const;
  fs::path status(const std::string& tool, const std::string& run_id) const;
  // What a backend keeps of a kernel across sessions.
  fs::path kernel_workspace(const std::string& kernel_id) const;
};

// An id or key as one path component: what is not a letter, digit, '.', '_' or '-' becomes '_', and
// a changed or long name ends in 12 hexadecimal digits of its hash, so that two ids never meet.
std::string safe_name(std::string_view id);

}  // namespace hyperloom::session
