// The lock that makes one process the owner of a session.
#pragma once

#include <filesystem>
#include <string>

#include "hyperloom/core/json.h"

namespace hyperloom::session {

// An exclusive flock on a file that is opened without following links, mode 0600. The file says who
// holds it: {pid, host, started_at, heartbeat_at}. Let go when it ends, or when the process does.
// Move-only. Threads: one at a time.
class Lock {
 public:
  // Errors: "session_already_running" naming pid and host of the owner, "unwritable_file".
  static Result<Lock> take(const std::filesystem::path& path);
  // Whether some process holds it, and what it says of itself.
  static bool is_held(const std::filesystem::path& path, Json& owner);

  Lock(Lock&& other) noexcept;
  Lock& operator=(Lock&& other) noexcept;
  ~Lock();
  // Writes the time into the file.
  void heartbeat();

 private:
  Lock(int fd, std::string started_at) : fd_(fd), started_at_(std::move(started_at)) {}
  int fd_ = -1;
  std::string started_at_;
};

}  // namespace hyperloom::session
