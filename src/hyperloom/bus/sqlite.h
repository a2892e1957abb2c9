// SQLite as this room uses it: errors as values, prepared statements kept, transactions that end.
#pragma once

#include <sqlite3.h>

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "hyperloom/bus/database.h"

namespace hyperloom::bus {

struct Database::Impl {
  sqlite3* handle = nullptr;
  std::string path;
  std::string name;  // of the session, from which message ids derive
  std::mutex mutex;  // held for the length of a Transaction or a Reading
  std::map<std::string, sqlite3_stmt*, std::less<>> statements;  // by their text
  size_t appended_since_prune = 0;

  // Waiters of lanes and devices, in the order in which they came, and how they are woken.
  struct Waiter {
    std::set<std::string> names;
  };
  std::list<Waiter> waiters;
  std::condition_variable released;
  // Leases that ended while their rows could not be removed; the rows count as dead.
  std::set<std::string> orphans;
  uint64_t next_holder = 0;

  ~Impl();
  // "database", naming the file and SQLite's last reason.
  Error error() const;
  Result<void> execute(const char* sql);
};

// One run of a statement, which stays prepared for the next. Parameters are bound in order. Needs
// the database's mutex.
class Query {
 public:
  Query(Database::Impl& database, std::string_view sql);
  Query(const Query&) = delete;
  Query& operator=(const Query&) = delete;
  ~Query();

  Query& bind(std::string_view text);
  Query& bind(int64_t number);
  Query& bind_null();
  Query& bind_or_null(std::string_view text) { return text.empty() ? bind_null() : bind(text); }

  // The next row: true when there is one.
  Result<bool> step();
  // Runs a statement that gives no rows.
  Result<void> run();
  std::string text(int column) const;  // empty for NULL
  int64_t integer(int column) const;
  bool is_null(int column) const;
  // SQLite's code of the last failure, extended.
  int code() const { return code_; }

 private:
  Database::Impl& database_;
  sqlite3_stmt* statement_ = nullptr;
  int next_ = 1;
  int code_ = SQLITE_OK;
};

// The mutex and an IMMEDIATE transaction; undone unless committed.
class Transaction {
 public:
  static Result<Transaction> begin(Database::Impl& database);
  Transaction(Transaction&&) noexcept = default;
  Transaction& operator=(Transaction&&) = delete;
  ~Transaction();
  Result<void> commit();

 private:
  Transaction(Database::Impl& database, std::unique_lock<std::mutex> lock)
      : database_(&database), lock_(std::move(lock)) {}
  Database::Impl* database_;
  std::unique_lock<std::mutex> lock_;
  bool open_ = true;
};

}  // namespace hyperloom::bus
