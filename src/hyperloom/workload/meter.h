// Every measured number passes here, so that a run can be recorded and replayed.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "hyperloom/core/json.h"

namespace hyperloom::workload {

// Live by default. With a record file each measurement is appended, synced, under a key that does
// not depend on time, process or order of threads (what is measured, content hashes, ordinal). With
// a replay file a key that is found answers from it and the measurement is not made; one that is
// not found is made, and recorded too when both are the same file, which is how a killed run goes
// on with what it had measured. Threads: any.
class Meter {
 public:
  Meter();
  // Empty paths for none. Errors: "unreadable_file", "invalid_json", "unwritable_file".
  static Result<Meter> open(const std::filesystem::path& record,
                            const std::filesystem::path& replay);
  Meter(Meter&&) noexcept;
  Meter& operator=(Meter&&) noexcept;
  ~Meter();

  // `measure` gives the value; errors are recorded as well, so that a replay fails the same way.
  Result<Json> value(const std::string& key, const std::function<Result<Json>()>& measure);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace hyperloom::workload
