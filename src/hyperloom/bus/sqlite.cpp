#include "hyperloom/bus/sqlite.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>

namespace hyperloom::bus {

Database::Impl::~Impl() {
  for (const auto& [sql, statement] : statements) sqlite3_finalize(statement);
  sqlite3_close(handle);
}

Error Database::Impl::error() const {
  const int code = sqlite3_extended_errcode(handle);
  // What the system says, where SQLite alone says no more than that it failed.
  const int system = (code & 0xff) == SQLITE_IOERR || (code & 0xff) == SQLITE_CANTOPEN
                         ? sqlite3_system_errno(handle)
                         : 0;
  std::string hint;
  if ((code & 0xff) == SQLITE_FULL || system == ENOSPC) {
    hint = "make room on the disk, then resume the session";
  }
  if ((code & 0xff) == SQLITE_READONLY || ((code & 0xff) == SQLITE_CANTOPEN && system != ENOSPC)) {
    hint = "make the file and its folder writable";
  }
  if ((code & 0xff) == SQLITE_NOTADB || (code & 0xff) == SQLITE_CORRUPT) {
    hint = "put back a copy of the file, or start a new session";
  }
  std::string message = fmt::format("{}: {}", path, sqlite3_errmsg(handle));
  if (system != 0) message += fmt::format(": {}", std::strerror(system));
  return {"database", std::move(message), std::move(hint)};
}

Result<void> Database::Impl::execute(const char* sql) {
  if (sqlite3_exec(handle, sql, nullptr, nullptr, nullptr) != SQLITE_OK) {
    return std::unexpected(error());
  }
  return {};
}

Query::Query(Database::Impl& database, std::string_view sql) : database_(database) {
  const auto kept = database.statements.find(sql);
  if (kept != database.statements.end()) {
    statement_ = kept->second;
    return;
  }
  code_ = sqlite3_prepare_v3(database.handle, sql.data(), static_cast<int>(sql.size()),
                             SQLITE_PREPARE_PERSISTENT, &statement_, nullptr);
  if (code_ == SQLITE_OK) database.statements.emplace(sql, statement_);
}

Query::~Query() {
  if (statement_ == nullptr) return;
  sqlite3_reset(statement_);
  sqlite3_clear_bindings(statement_);
}

Query& Query::bind(std::string_view text) {
  if (code_ == SQLITE_OK) {
    // Never a null pointer, which would bind NULL.
    code_ = sqlite3_bind_text64(statement_, next_, text.empty() ? "" : text.data(), text.size(),
                                SQLITE_TRANSIENT, SQLITE_UTF8);
  }
  ++next_;
  return *this;
}

Query& Query::bind(int64_t number) {
  if (code_ == SQLITE_OK) code_ = sqlite3_bind_int64(statement_, next_, number);
  ++next_;
  return *this;
}

Query& Query::bind_null() {
  if (code_ == SQLITE_OK) code_ = sqlite3_bind_null(statement_, next_);
  ++next_;
  return *this;
}

Result<bool> Query::step() {
  if (code_ == SQLITE_OK) code_ = sqlite3_step(statement_);
  const int result = code_;
  if (result == SQLITE_ROW || result == SQLITE_DONE) {
    code_ = SQLITE_OK;
    return result == SQLITE_ROW;
  }
  code_ = sqlite3_extended_errcode(database_.handle);
  return std::unexpected(database_.error());
}

Result<void> Query::run() {
  for (;;) {
    auto more = step();
    if (!more) return std::unexpected(more.error());
    if (!*more) return {};
  }
}

std::string Query::text(int column) const {
  const auto* bytes = reinterpret_cast<const char*>(sqlite3_column_text(statement_, column));
  if (bytes == nullptr) return "";
  return {bytes, static_cast<size_t>(sqlite3_column_bytes(statement_, column))};
}

int64_t Query::integer(int column) const { return sqlite3_column_int64(statement_, column); }

bool Query::is_null(int column) const {
  return sqlite3_column_type(statement_, column) == SQLITE_NULL;
}

Result<Transaction> Transaction::begin(Database::Impl& database) {
  std::unique_lock lock(database.mutex);
  auto begun = Query(database, "BEGIN IMMEDIATE").run();
  if (!begun) return std::unexpected(begun.error());
  return Transaction(database, std::move(lock));
}

Transaction::~Transaction() {
  if (!open_ || !lock_.owns_lock()) return;
  [[maybe_unused]] const auto undone = Query(*database_, "ROLLBACK").run();
}

Result<void> Transaction::commit() {
  auto committed = Query(*database_, "COMMIT").run();
  if (committed) open_ = false;
  return committed;
}

}  // namespace hyperloom::bus
