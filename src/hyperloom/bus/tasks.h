// The task table: work that is queued, running or finished, each once for its idempotency key.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "hyperloom/bus/database.h"
#include "hyperloom/core/json.h"

namespace hyperloom::bus {

struct Task {
  std::string task_id;  // derived from the idempotency key when empty
  std::string kind;
  std::string state = "queued";  // queued, running, succeeded, failed, cancelled
  Json params = Json::object();
  std::string idempotency_key;
  std::vector<std::string> requires_lanes;
  std::vector<std::string> side_effects;
  int64_t lease_ttl_sec = 3600;
  // Rows {ts, state, ...} of each transition, and {ts, note} of progress, newest last. Of notes the
  // newest 120 are kept. The row of "running" names its holder and until when it holds.
  Json history = Json::array();
  std::string created_at;
  std::string updated_at;

  bool finished() const { return state != "queued" && state != "running"; }
};

// Threads: any. Every call that changes something is durable when it returns. Errors of all:
// "database"; those of a task that is not there: "unknown_task".
class Tasks {
 public:
  static constexpr size_t kNotes = 120;

  explicit Tasks(std::shared_ptr<Database> database);

  struct Created {
    Task task;
    bool existing = false;  // there was one with this key; it is what `task` holds
  };
  // A new task in state queued. Errors: "invalid_task" for an empty kind or key.
  Result<Created> create_or_return_existing(Task task);
  Result<std::optional<Task>> find(const std::string& task_id) const;
  Result<std::optional<Task>> find_by_key(const std::string& idempotency_key) const;
  // Those in the state, the least recently changed first.
  Result<std::vector<Task>> in_state(const std::string& state, size_t limit = 1000) const;

  // queued -> running or cancelled; running -> succeeded, failed or cancelled. A running task is
  // held by this process. `detail` goes into the history. Errors: "invalid_transition".
  Result<Task> transition(const std::string& task_id, const std::string& state,
                          const Json& detail = Json::object());
  Result<void> note(const std::string& task_id, const std::string& text);
  // Lets a running task hold on for longer. Errors: "invalid_extension" outside of 1 to 3600
  // seconds, "invalid_transition" for a task that does not run.
  Result<void> extend(const std::string& task_id, int64_t extra_sec);
  // Running tasks whose holder has died ("holder_dead") or whose time is up ("lease_expired")
  // become failed. Gives them as they are after it.
  Result<std::vector<Task>> reclaim();

 private:
  std::shared_ptr<Database> database_;
};

}  // namespace hyperloom::bus
