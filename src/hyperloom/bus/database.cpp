#include "hyperloom/bus/database.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "hyperloom/bus/sqlite.h"
#include "hyperloom/core/durable.h"

namespace hyperloom::bus {
namespace {

constexpr int64_t kSchemaVersion = 4;

constexpr const char* kSchema = R"(
CREATE TABLE events (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  msg_id TEXT NOT NULL UNIQUE,
  from_agent TEXT NOT NULL,
  to_agent TEXT NOT NULL,
  topic TEXT NOT NULL,
  in_reply_to TEXT,
  payload TEXT NOT NULL,
  priority INTEGER NOT NULL,
  ts TEXT NOT NULL
);
CREATE INDEX events_to_agent ON events (to_agent, seq);
CREATE INDEX events_topic ON events (topic, seq);
CREATE TABLE cursors (
  agent TEXT PRIMARY KEY,
  last_processed_seq INTEGER NOT NULL,
  last_processed_msg_id TEXT NOT NULL,
  processed_at TEXT NOT NULL
);
CREATE TABLE tasks (
  task_id TEXT PRIMARY KEY,
  kind TEXT NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('queued', 'running', 'succeeded', 'failed', 'cancelled')),
  params TEXT NOT NULL,
  idempotency_key TEXT NOT NULL UNIQUE,
  requires_lanes TEXT NOT NULL,
  side_effects TEXT NOT NULL,
  lease_ttl_sec INTEGER NOT NULL,
  history TEXT NOT NULL,
  created_at TEXT NOT NULL,
  updated_at TEXT NOT NULL
);
CREATE INDEX tasks_state ON tasks (state, updated_at);
CREATE TABLE leases (
  lane TEXT NOT NULL,
  holder_id TEXT NOT NULL,
  task_id TEXT,
  action TEXT NOT NULL,
  pid INTEGER NOT NULL,
  acquired_at TEXT NOT NULL,
  expires_at TEXT,
  heartbeat_at TEXT NOT NULL,
  PRIMARY KEY (lane, holder_id)
);
CREATE INDEX leases_expires ON leases (expires_at);
CREATE INDEX leases_lane ON leases (lane);
CREATE TABLE lane_capacity (lane TEXT PRIMARY KEY, capacity INTEGER NOT NULL);
CREATE TABLE gpu_leases (
  gpu_id TEXT PRIMARY KEY,
  holder_id TEXT NOT NULL,
  task_id TEXT,
  acquired_at TEXT NOT NULL,
  expires_at TEXT,
  heartbeat_at TEXT NOT NULL
);
CREATE INDEX gpu_leases_expires ON gpu_leases (expires_at);
CREATE TABLE schema_version (version INTEGER NOT NULL);
INSERT INTO schema_version VALUES (4);
INSERT INTO lane_capacity VALUES ('server_lifecycle', 1), ('workspace_mutation', 1),
  ('benchmark_lane', 1), ('profile_lane', 1), ('research_lane', 1), ('gpu_research_lane', 1),
  ('build_lane', 1);
)";

// The journal modes that keep what a commit promised.
Result<std::string> journal_mode(const Environment& environment) {
  std::string mode = environment.text("INFERENCE_OPTIMIZER_SQLITE_JOURNAL_MODE");
  std::ranges::transform(mode, mode.begin(),
                         [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  for (const char* durable : {"WAL", "DELETE", "TRUNCATE", "PERSIST"}) {
    if (mode == durable) return mode;
  }
  return fail("invalid_environment",
              fmt::format("INFERENCE_OPTIMIZER_SQLITE_JOURNAL_MODE is '{}'", mode),
              "set it to WAL, DELETE, TRUNCATE or PERSIST, or unset it");
}

Result<void> set_up(Database::Impl& database) {
  auto there = [&]() -> Result<bool> {
    return Query(database,
                 "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'schema_version'")
        .step();
  }();
  if (!there) return std::unexpected(there.error());
  if (!*there) {
    auto transaction = Transaction::begin(database);
    if (!transaction) return std::unexpected(transaction.error());
    if (auto made = database.execute(kSchema); !made) return made;
    return transaction->commit();
  }
  Query version(database, "SELECT max(version) FROM schema_version");
  auto row = version.step();
  if (!row) return std::unexpected(row.error());
  if (version.integer(0) != kSchemaVersion) {
    return fail("unknown_schema_version",
                fmt::format("{}: schema version is {}, and this program reads {}", database.path,
                            version.integer(0), kSchemaVersion),
                "use the program that wrote the session");
  }
  return {};
}

// Retention keeps the file small, so all of it can be looked at before it is trusted.
Result<void> check_integrity(Database::Impl& database) {
  Query check(database, "PRAGMA quick_check(1)");
  auto row = check.step();
  if (!row) return std::unexpected(row.error());
  if (check.text(0) != "ok") {
    return fail("database", fmt::format("{}: is damaged: {}", database.path, check.text(0)),
                "put back a copy of the file, or start a new session");
  }
  return {};
}

}  // namespace

Database::Database(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Database::~Database() = default;

Result<std::shared_ptr<Database>> Database::open(const std::filesystem::path& path,
                                                 const Environment& environment) {
  const auto mode = journal_mode(environment);
  if (!mode) return std::unexpected(mode.error());
  if (auto made = make_folder(path.parent_path()); !made) return std::unexpected(made.error());
  std::error_code error;
  const auto folder = std::filesystem::canonical(path.parent_path(), error);
  if (error) {
    return fail("database", fmt::format("{}: {}", path.string(), error.message()));
  }
  auto impl = std::make_unique<Impl>();
  impl->path = (folder / path.filename()).string();
  impl->name = folder.parent_path().filename().string();
  constexpr int kFlags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOFOLLOW |
                         SQLITE_OPEN_FULLMUTEX | SQLITE_OPEN_EXRESCODE;
  if (sqlite3_open_v2(impl->path.c_str(), &impl->handle, kFlags, nullptr) != SQLITE_OK) {
    return std::unexpected(impl->error());
  }
  sqlite3_busy_timeout(impl->handle, 30000);
  const std::string settings = fmt::format(
      "PRAGMA journal_mode = {}; PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON; "
      "PRAGMA temp_store = MEMORY;",
      *mode);
  if (auto set = impl->execute(settings.c_str()); !set) return std::unexpected(set.error());
  if (auto sound = check_integrity(*impl); !sound) return std::unexpected(sound.error());
  if (auto made = set_up(*impl); !made) return std::unexpected(made.error());
  return std::shared_ptr<Database>(new Database(std::move(impl)));
}

}  // namespace hyperloom::bus
