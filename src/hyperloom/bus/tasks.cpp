#include "hyperloom/bus/tasks.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>

#include "hyperloom/bus/holder.h"
#include "hyperloom/bus/sqlite.h"
#include "hyperloom/core/fault.h"
#include "hyperloom/core/time.h"
#include "loom/base/hash.h"

namespace hyperloom::bus {
namespace {

#define HL_COLUMNS                                                                               \
  "task_id, kind, state, params, idempotency_key, requires_lanes, side_effects, lease_ttl_sec, " \
  "history, created_at, updated_at"

constexpr int64_t kLongestExtension = 3600;

int64_t unix_now() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::seconds>(now).count();
}

Result<Json> parse_column(const Query& row, int column, const std::string& path) {
  return parse_json(row.text(column), fmt::format("{}: task {}", path, row.text(0)));
}

std::vector<std::string> words_of(const Json& list) {
  std::vector<std::string> words;
  for (const Json& word : list) {
    if (word.is_string()) words.push_back(word.get<std::string>());
  }
  return words;
}

Result<Task> task_of(const Query& row, const std::string& path) {
  std::array<Json, 4> documents;
  constexpr std::array kJsonColumns = {3, 5, 6, 8};
  for (size_t i = 0; i < kJsonColumns.size(); ++i) {
    auto document = parse_column(row, kJsonColumns[i], path);
    if (!document) return std::unexpected(document.error());
    documents[i] = std::move(*document);
  }
  Task task;
  task.task_id = row.text(0);
  task.kind = row.text(1);
  task.state = row.text(2);
  task.params = std::move(documents[0]);
  task.idempotency_key = row.text(4);
  task.requires_lanes = words_of(documents[1]);
  task.side_effects = words_of(documents[2]);
  task.lease_ttl_sec = row.integer(7);
  task.history = documents[3].is_array() ? std::move(documents[3]) : Json::array();
  task.created_at = row.text(9);
  task.updated_at = row.text(10);
  return task;
}

// Needs the database's mutex. The only row of the query, if there is one.
Result<std::optional<Task>> one_task(Database::Impl& database, std::string_view sql,
                                     const std::string& key) {
  Query query(database, sql);
  auto more = query.bind(key).step();
  if (!more) return std::unexpected(more.error());
  if (!*more) return std::nullopt;
  auto task = task_of(query, database.path);
  if (!task) return std::unexpected(task.error());
  return std::move(*task);
}

Result<Task> need_task(Database::Impl& database, const std::string& task_id) {
  auto found = one_task(database, "SELECT " HL_COLUMNS " FROM tasks WHERE task_id = ?", task_id);
  if (!found) return std::unexpected(found.error());
  if (!*found) return fail("unknown_task", fmt::format("there is no task '{}'", task_id));
  return std::move(**found);
}

// Writes what may change of a task. Inside a transaction.
Result<void> save(Database::Impl& database, Task& task) {
  task.updated_at = utc_now();
  Query query(database,
              "UPDATE tasks SET state = ?, history = ?, updated_at = ? WHERE task_id = ?");
  return query.bind(task.state)
      .bind(compact(task.history))
      .bind(task.updated_at)
      .bind(task.task_id)
      .run();
}

// The history row that says who holds a running task, or null.
Json* holding_row(Task& task) {
  for (auto row = task.history.rbegin(); row != task.history.rend(); ++row) {
    if (text_of(*row, "state") == "running") return &*row;
  }
  return nullptr;
}

bool may_follow(std::string_view from, std::string_view to) {
  if (from == "queued") return to == "running" || to == "cancelled";
  return from == "running" && (to == "succeeded" || to == "failed" || to == "cancelled");
}

Json transition_row(Database::Impl& database, const Task& task, const Json& detail) {
  Json row = detail.is_object() ? detail : Json::object();
  row["ts"] = utc_now();
  row["state"] = task.state;
  if (task.state == "running") {
    row["holder"] = new_holder(database);
    row["expires_unix"] = unix_now() + task.lease_ttl_sec;
  }
  return row;
}

}  // namespace

Tasks::Tasks(std::shared_ptr<Database> database) : database_(std::move(database)) {}

Result<Tasks::Created> Tasks::create_or_return_existing(Task task) {
  if (task.kind.empty() || task.idempotency_key.empty()) {
    return fail("invalid_task", "a task needs a kind and an idempotency key");
  }
  auto& database = database_->impl();
  fault_point("task.create");
  auto transaction = Transaction::begin(database);
  if (!transaction) return std::unexpected(transaction.error());
  auto existing = one_task(database, "SELECT " HL_COLUMNS " FROM tasks WHERE idempotency_key = ?",
                           task.idempotency_key);
  if (!existing) return std::unexpected(existing.error());
  if (*existing) return Created{std::move(**existing), true};
  if (task.task_id.empty()) {
    task.task_id = "task-" + loom::sha256_hex(task.idempotency_key).substr(0, 12);
  }
  task.state = "queued";
  task.created_at = task.updated_at = utc_now();
  task.history = Json::array({{{"ts", task.created_at}, {"state", task.state}}});
  Query query(database,
              "INSERT INTO tasks (" HL_COLUMNS ") VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
  query.bind(task.task_id)
      .bind(task.kind)
      .bind(task.state)
      .bind(compact(task.params))
      .bind(task.idempotency_key)
      .bind(compact(task.requires_lanes))
      .bind(compact(task.side_effects))
      .bind(task.lease_ttl_sec)
      .bind(compact(task.history))
      .bind(task.created_at)
      .bind(task.updated_at);
  if (auto made = query.run(); !made) return std::unexpected(made.error());
  if (auto done = transaction->commit(); !done) return std::unexpected(done.error());
  return Created{std::move(task), false};
}

Result<std::optional<Task>> Tasks::find(const std::string& task_id) const {
  auto& database = database_->impl();
  const std::lock_guard lock(database.mutex);
  return one_task(database, "SELECT " HL_COLUMNS " FROM tasks WHERE task_id = ?", task_id);
}

Result<std::optional<Task>> Tasks::find_by_key(const std::string& idempotency_key) const {
  auto& database = database_->impl();
  const std::lock_guard lock(database.mutex);
  return one_task(database, "SELECT " HL_COLUMNS " FROM tasks WHERE idempotency_key = ?",
                  idempotency_key);
}

Result<std::vector<Task>> Tasks::in_state(const std::string& state, size_t limit) const {
  auto& database = database_->impl();
  const std::lock_guard lock(database.mutex);
  Query query(database,
              "SELECT " HL_COLUMNS " FROM tasks WHERE state = ? ORDER BY updated_at LIMIT ?");
  query.bind(state).bind(static_cast<int64_t>(std::min<size_t>(limit, INT64_MAX)));
  std::vector<Task> tasks;
  for (;;) {
    auto more = query.step();
    if (!more) return std::unexpected(more.error());
    if (!*more) return tasks;
    auto task = task_of(query, database.path);
    if (!task) return std::unexpected(task.error());
    tasks.push_back(std::move(*task));
  }
}

Result<Task> Tasks::transition(const std::string& task_id, const std::string& state,
                               const Json& detail) {
  auto& database = database_->impl();
  fault_point("task.transition");
  auto transaction = Transaction::begin(database);
  if (!transaction) return std::unexpected(transaction.error());
  auto task = need_task(database, task_id);
  if (!task) return task;
  if (!may_follow(task->state, state)) {
    return fail("invalid_transition",
                fmt::format("task '{}' is {} and cannot become {}", task_id, task->state, state));
  }
  task->state = state;
  task->history.push_back(transition_row(database, *task, detail));
  if (auto saved = save(database, *task); !saved) return std::unexpected(saved.error());
  if (auto done = transaction->commit(); !done) return std::unexpected(done.error());
  return task;
}

Result<void> Tasks::note(const std::string& task_id, const std::string& text) {
  auto& database = database_->impl();
  fault_point("task.note");
  auto transaction = Transaction::begin(database);
  if (!transaction) return std::unexpected(transaction.error());
  auto task = need_task(database, task_id);
  if (!task) return std::unexpected(task.error());
  const auto is_note = [](const Json& row) { return row.contains("note"); };
  auto& history = task->history.get_ref<Json::array_t&>();
  if (static_cast<size_t>(std::ranges::count_if(history, is_note)) >= kNotes) {
    history.erase(std::ranges::find_if(history, is_note));
  }
  history.push_back({{"ts", utc_now()}, {"note", text}});
  if (auto saved = save(database, *task); !saved) return saved;
  return transaction->commit();
}

Result<void> Tasks::extend(const std::string& task_id, int64_t extra_sec) {
  if (extra_sec < 1 || extra_sec > kLongestExtension) {
    return fail("invalid_extension", fmt::format("a lease is extended by 1 to {} seconds, not {}",
                                                 kLongestExtension, extra_sec));
  }
  auto& database = database_->impl();
  fault_point("task.extend");
  auto transaction = Transaction::begin(database);
  if (!transaction) return std::unexpected(transaction.error());
  auto task = need_task(database, task_id);
  if (!task) return std::unexpected(task.error());
  Json* holding = holding_row(*task);
  if (task->state != "running" || holding == nullptr) {
    return fail("invalid_transition", fmt::format("task '{}' does not run", task_id));
  }
  (*holding)["expires_unix"] =
      static_cast<int64_t>(number_of(*holding, "expires_unix")) + extra_sec;
  if (auto saved = save(database, *task); !saved) return saved;
  return transaction->commit();
}

Result<std::vector<Task>> Tasks::reclaim() {
  auto running = in_state("running", INT64_MAX);
  if (!running) return running;
  std::vector<Task> reclaimed;
  for (Task& task : *running) {
    const Json* holding = holding_row(task);
    std::string reason;
    if (holding == nullptr || is_dead(text_of(*holding, "holder"))) {
      reason = "holder_dead";
    } else if (number_of(*holding, "expires_unix") <= static_cast<double>(unix_now())) {
      reason = "lease_expired";
    }
    if (reason.empty()) continue;
    auto failed = transition(task.task_id, "failed", {{"reason", reason}});
    // It may have ended by itself in between.
    if (!failed && failed.error().error_class == "invalid_transition") continue;
    if (!failed) return std::unexpected(failed.error());
    reclaimed.push_back(std::move(*failed));
  }
  return reclaimed;
}

}  // namespace hyperloom::bus
