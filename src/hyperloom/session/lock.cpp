#include "hyperloom/session/lock.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>
#include <utility>

#include "hyperloom/core/time.h"
#include "loom/base/file.h"

namespace hyperloom::session {
namespace {

// A reader that looks whether the lock is held holds it shared for a moment.
constexpr int kTries = 20;
constexpr auto kPause = std::chrono::milliseconds(10);

bool try_lock(int fd, int operation) {
  while (::flock(fd, operation | LOCK_NB) != 0) {
    if (errno != EINTR) return false;
  }
  return true;
}

std::string host_name() {
  char name[256] = "";
  if (::gethostname(name, sizeof name - 1) != 0) return "unknown";
  return name;
}

Json owner_of(const std::filesystem::path& path) {
  const auto document = read_json(path);
  return document && document->is_object() ? *document : Json::object();
}

}  // namespace

Result<Lock> Lock::take(const std::filesystem::path& path) {
  constexpr int kFlags = O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC;
  const int fd = ::open(path.c_str(), kFlags, 0600);
  if (fd < 0) {
    const char* reason = errno == ELOOP ? "is a symbolic link" : std::strerror(errno);
    return fail("unwritable_file", fmt::format("{}: {}", path.string(), reason));
  }
  Lock lock(fd, utc_now());
  (void)::fchmod(fd, 0600);
  bool held = try_lock(fd, LOCK_EX);
  for (int i = 1; i < kTries && !held; ++i) {
    std::this_thread::sleep_for(kPause);
    held = try_lock(fd, LOCK_EX);
  }
  if (!held) {
    const Json owner = owner_of(path);
    return fail("session_already_running",
                fmt::format("{}: process {} on host {} runs this session since {}",
                            path.parent_path().string(), compact(value_of(owner, "pid")),
                            text_of(owner, "host", "unknown"),
                            text_of(owner, "started_at", "an unknown time")),
                "wait until it ends, end it, or use another session");
  }
  lock.heartbeat();
  return lock;
}

bool Lock::is_held(const std::filesystem::path& path, Json& owner) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0) return false;
  const bool held = !try_lock(fd, LOCK_SH) && errno == EWOULDBLOCK;
  ::close(fd);
  if (held) owner = owner_of(path);
  return held;
}

Lock::Lock(Lock&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)), started_at_(std::move(other.started_at_)) {}

Lock& Lock::operator=(Lock&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(started_at_, other.started_at_);
  return *this;
}

Lock::~Lock() {
  if (fd_ >= 0) ::close(fd_);
}

void Lock::heartbeat() {
  const std::string text = pretty({{"pid", ::getpid()},
                                   {"host", host_name()},
                                   {"started_at", started_at_},
                                   {"heartbeat_at", utc_now()}});
  // In place: a new file would be another lock. What it says is a help for people only, so a disk
  // that is full does not stop the session here.
  if (::pwrite(fd_, text.data(), text.size(), 0) == static_cast<ssize_t>(text.size())) {
    [[maybe_unused]] const int cut = ::ftruncate(fd_, static_cast<off_t>(text.size()));
  }
}

}  // namespace hyperloom::session
