// Peer of suite `hyperloom`: the same rows by SQLite alone. One prepared INSERT, one transaction a
// row, the same durability and the same keys.
//
// usage: bench_hyperloom_sqlite WORK_FOLDER BUDGET_MS
// Prints one JSON object: rows a second.

#include <sqlite3.h>

#include "messages.h"

namespace {

constexpr const char* kSetup =
    "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;"
    "CREATE TABLE events (seq INTEGER PRIMARY KEY AUTOINCREMENT, msg_id TEXT NOT NULL UNIQUE,"
    " from_agent TEXT, to_agent TEXT, topic TEXT, in_reply_to TEXT, payload TEXT,"
    " priority INTEGER, ts TEXT);"
    "CREATE INDEX events_to_agent ON events (to_agent, seq);"
    "CREATE INDEX events_topic ON events (topic, seq);";
constexpr const char* kInsert =
    "INSERT INTO events (msg_id, from_agent, to_agent, topic, payload, priority, ts) VALUES "
    "(?, 'orchestration', 'kernel_agent', 'request', ?, 1, ?)";

class Log {
 public:
  explicit Log(const std::string& path) {
    good_ = sqlite3_open(path.c_str(), &handle_) == SQLITE_OK && execute(kSetup) &&
            sqlite3_prepare_v2(handle_, kInsert, -1, &insert_, nullptr) == SQLITE_OK;
  }
  Log(const Log&) = delete;
  Log& operator=(const Log&) = delete;
  ~Log() {
    sqlite3_finalize(insert_);
    sqlite3_close(handle_);
  }
  bool good() const { return good_; }
  bool execute(const char* sql) {
    return sqlite3_exec(handle_, sql, nullptr, nullptr, nullptr) == SQLITE_OK;
  }
  bool insert(const std::string& id, const std::string& payload, const std::string& time) {
    sqlite3_bind_text(insert_, 1, id.c_str(), static_cast<int>(id.size()), SQLITE_STATIC);
    sqlite3_bind_text(insert_, 2, payload.c_str(), static_cast<int>(payload.size()), SQLITE_STATIC);
    sqlite3_bind_text(insert_, 3, time.c_str(), static_cast<int>(time.size()), SQLITE_STATIC);
    const bool done = sqlite3_step(insert_) == SQLITE_DONE;
    return sqlite3_reset(insert_) == SQLITE_OK && done;
  }
  int64_t last_row() const { return sqlite3_last_insert_rowid(handle_); }

 private:
  sqlite3* handle_ = nullptr;
  sqlite3_stmt* insert_ = nullptr;
  bool good_ = false;
};

std::string id_of(int number) { return fmt::format("{:032x}", 0x9e3779b97f4a7c15ULL * number); }

double send(const std::filesystem::path& folder, int messages) {
  Log log((folder / "raw.db").string());
  const std::string time = "2026-11-30T09:00:00.123456Z";
  bool good = log.good() && log.execute("BEGIN IMMEDIATE");
  for (int i = 1; i <= loom::bench::kBefore && good; ++i) {
    good = log.insert(id_of(i), loom::bench::payload_text(0), time);
  }
  if (!good || !log.execute("COMMIT")) return 0;
  std::vector<std::pair<std::string, std::string>> batch;
  for (int i = 1; i <= messages; ++i) {
    batch.emplace_back(id_of(loom::bench::kBefore + i), loom::bench::payload_text(i));
  }
  const auto start = loom::bench::Clock::now();
  for (const auto& [id, payload] : batch) {
    if (!log.execute("BEGIN IMMEDIATE") || !log.insert(id, payload, time) ||
        !log.execute("COMMIT")) {
      return 0;
    }
  }
  const double seconds = loom::bench::nanoseconds_since(start) / 1e9;
  return log.last_row() == loom::bench::kBefore + messages ? seconds : 0;
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 3) {
    fmt::print(stderr, "usage: bench_hyperloom_sqlite WORK_FOLDER BUDGET_MS\n");
    return 2;
  }
  return loom::bench::measure_places(std::filesystem::path(arguments[1]) / "peer", send);
}
