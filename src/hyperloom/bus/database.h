// The session's SQLite file: schema version 4 of the behaviour specification.
#pragma once

#include <filesystem>
#include <memory>

#include "hyperloom/core/environment.h"
#include "hyperloom/core/error.h"

namespace hyperloom::bus {

// One connection: WAL (or INFERENCE_OPTIMIZER_SQLITE_JOURNAL_MODE), synchronous FULL, foreign keys,
// busy timeout 30 s. Shared by Bus, Tasks and Lanes, whose calls take turns on it.
class Database {
 public:
  // Makes the file and its folder where they are missing. Errors: "database" naming the file and
  // SQLite's reason, "unknown_schema_version".
  static Result<std::shared_ptr<Database>> open(const std::filesystem::path& path,
                                                const Environment& environment);
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;
  ~Database();

  struct Impl;
  Impl& impl() { return *impl_; }

 private:
  explicit Database(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace hyperloom::bus
