#include "hyperloom/integrate/tree_files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <set>
#include <thread>
#include <utility>

#include "hyperloom/core/fault.h"
#include "loom/base/hash.h"

namespace hyperloom::integrate {
namespace {

constexpr off_t kMaxFile = off_t{64} << 20;
constexpr int kFolderFlags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;

struct Descriptor {
  explicit Descriptor(int value) : fd(value) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (fd >= 0) ::close(fd);
  }
  int fd;
};

// The system's reason; a link where none may be is told apart.
std::unexpected<Error> refuse(const fs::path& path, const char* error_class, int error = errno) {
  if (error == ELOOP || error == ENOTDIR) {
    return fail("path_escapes_tree", path.string() + ": a symbolic link or no folder on the way");
  }
  return fail(error_class, fmt::format("{}: {}", path.string(), std::strerror(error)));
}

std::string temporary_name(const fs::path& path) {
  return fmt::format(".hyperloom-{}.tmp", loom::sha256_hex(path.filename().string()).substr(0, 16));
}

Result<void> write_all(int fd, std::string_view content, const fs::path& path) {
  while (!content.empty()) {
    const ssize_t count = ::write(fd, content.data(), content.size());
    if (count < 0) {
      if (errno == EINTR) continue;
      return refuse(path, "unwritable_file");
    }
    content.remove_prefix(static_cast<size_t>(count));
  }
  if (::fsync(fd) != 0 && errno != EINVAL) return refuse(path, "unwritable_file");
  return {};
}

Result<std::string> read_all(int fd, const fs::path& path) {
  std::string content;
  std::array<char, 65536> buffer;
  for (;;) {
    const ssize_t count = ::read(fd, buffer.data(), buffer.size());
    if (count == 0) return content;
    if (count < 0) {
      if (errno == EINTR) continue;
      return refuse(path, "unreadable_file");
    }
    content.append(buffer.data(), static_cast<size_t>(count));
  }
}

}  // namespace

Result<fs::path> relative_inside(const fs::path& path) {
  const std::string& text = path.native();
  const auto refused = [&](std::string_view why) {
    return fail("path_escapes_tree", fmt::format("'{}' {}", text, why),
                "name a file below the tree, relative to it");
  };
  if (text.empty()) return refused("is empty");
  if (text.find('\0') != std::string::npos) return refused("holds a NUL");
  if (path.is_absolute()) return refused("is absolute");
  for (const fs::path& part : path) {
    if (part == "..") return refused("leaves the tree");
    if (part.empty()) return refused("names a folder");
  }
  fs::path normal = path.lexically_normal();
  if (normal == ".") return refused("names a folder");
  return normal;
}

Result<TreeFiles> TreeFiles::open(const fs::path& root) {
  std::error_code error;
  const fs::path real = fs::canonical(root, error);
  if (error) return fail("unreadable_file", root.string() + ": " + error.message());
  const int fd = ::open(real.c_str(), kFolderFlags);
  if (fd < 0) return refuse(real, "unreadable_file");
  return TreeFiles(real, fd);
}

TreeFiles::TreeFiles(TreeFiles&& other) noexcept
    : root_(std::move(other.root_)), fd_(std::exchange(other.fd_, -1)) {}
TreeFiles& TreeFiles::operator=(TreeFiles&& other) noexcept {
  std::swap(root_, other.root_);
  std::swap(fd_, other.fd_);
  return *this;
}
TreeFiles::~TreeFiles() {
  if (fd_ >= 0) ::close(fd_);
}

Result<int> TreeFiles::open_parent(const fs::path& path) const {
  int at = ::fcntl(fd_, F_DUPFD_CLOEXEC, 0);
  if (at < 0) return refuse(path, "unreadable_file");
  for (const fs::path& part : path.parent_path()) {
    const int next = ::openat(at, part.c_str(), kFolderFlags);
    const int error = errno;
    ::close(at);
    if (next < 0) return refuse(root_ / path, "unreadable_file", error);
    at = next;
  }
  return at;
}

Result<std::optional<TreeFile>> TreeFiles::read(const fs::path& path) const {
  const auto inside = relative_inside(path);
  if (!inside) return std::unexpected(inside.error());
  const auto missing = missing_folders(*inside);
  if (!missing) return std::unexpected(missing.error());
  if (!missing->empty()) return std::nullopt;
  const auto opened = open_parent(*inside);
  if (!opened) return std::unexpected(opened.error());
  const Descriptor parent(*opened);
  const std::string name = inside->filename().string();
  // Not blocking: a pipe in place of the file must not hold us up.
  const Descriptor file(
      ::openat(parent.fd, name.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
  if (file.fd < 0) {
    if (errno == ENOENT) return std::nullopt;
    return refuse(root_ / *inside, "unreadable_file");
  }
  struct stat info{};
  if (::fstat(file.fd, &info) != 0) return refuse(root_ / *inside, "unreadable_file");
  if (!S_ISREG(info.st_mode)) {
    return fail("unreadable_file", (root_ / *inside).string() + ": is not a regular file");
  }
  if (info.st_size > kMaxFile) {
    return fail("unreadable_file", (root_ / *inside).string() + ": is larger than 64 MiB");
  }
  auto content = read_all(file.fd, root_ / *inside);
  if (!content) return std::unexpected(content.error());
  TreeFile result{std::move(*content), info.st_mode & 07777u, ""};
  result.hash = loom::sha256_hex(result.content);
  return result;
}

Result<void> TreeFiles::write(const fs::path& path, std::string_view content, unsigned mode) const {
  const auto inside = relative_inside(path);
  if (!inside) return std::unexpected(inside.error());
  const auto opened = open_parent(*inside);
  if (!opened) return std::unexpected(opened.error());
  const Descriptor parent(*opened);
  const fs::path full = root_ / *inside;
  const std::string name = inside->filename().string();
  const std::string temporary = temporary_name(*inside);
  struct stat info{};
  if (::fstatat(parent.fd, name.c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0 &&
      !S_ISREG(info.st_mode)) {
    return fail("path_escapes_tree", full.string() + ": is not a regular file");
  }
  ::unlinkat(parent.fd, temporary.c_str(), 0);
  const Descriptor file(::openat(parent.fd, temporary.c_str(),
                                 O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (file.fd < 0) return refuse(full, "unwritable_file");
  Result<void> done = write_all(file.fd, content, full);
  if (done && ::fchmod(file.fd, mode & 07777u) != 0) done = refuse(full, "unwritable_file");
  if (done) fault_point("tree_rename");
  if (done && ::renameat(parent.fd, temporary.c_str(), parent.fd, name.c_str()) != 0) {
    done = refuse(full, "unwritable_file");
  }
  if (!done) {
    ::unlinkat(parent.fd, temporary.c_str(), 0);
    return done;
  }
  if (::fsync(parent.fd) != 0 && errno != EINVAL) return refuse(full, "unwritable_file");
  return {};
}

Result<void> TreeFiles::remove(const fs::path& path) const {
  const auto inside = relative_inside(path);
  if (!inside) return std::unexpected(inside.error());
  const auto opened = open_parent(*inside);
  if (!opened) return std::unexpected(opened.error());
  const Descriptor parent(*opened);
  fault_point("tree_remove");
  if (::unlinkat(parent.fd, inside->filename().c_str(), 0) != 0 && errno != ENOENT) {
    return refuse(root_ / *inside, "unwritable_file");
  }
  if (::fsync(parent.fd) != 0 && errno != EINVAL) return refuse(root_ / *inside, "unwritable_file");
  return {};
}

void TreeFiles::remove_leftover(const fs::path& path) const {
  const auto inside = relative_inside(path);
  if (!inside) return;
  const auto opened = open_parent(*inside);
  if (!opened) return;
  const Descriptor parent(*opened);
  ::unlinkat(parent.fd, temporary_name(*inside).c_str(), 0);
}

Result<std::vector<fs::path>> TreeFiles::missing_folders(const fs::path& path) const {
  std::vector<fs::path> missing;
  int at = ::fcntl(fd_, F_DUPFD_CLOEXEC, 0);
  if (at < 0) return refuse(path, "unreadable_file");
  fs::path walked;
  for (const fs::path& part : path.parent_path()) {
    walked /= part;
    if (!missing.empty()) {
      missing.push_back(walked);
      continue;
    }
    const int next = ::openat(at, part.c_str(), kFolderFlags);
    if (next < 0 && errno != ENOENT) {
      const int error = errno;
      ::close(at);
      return refuse(root_ / walked, "unreadable_file", error);
    }
    if (next < 0) {
      missing.push_back(walked);
      continue;
    }
    ::close(at);
    at = next;
  }
  ::close(at);
  return missing;
}

Result<void> TreeFiles::make_folder(const fs::path& path) const {
  const auto opened = open_parent(path);
  if (!opened) return std::unexpected(opened.error());
  const Descriptor parent(*opened);
  fault_point("tree_folder");
  if (::mkdirat(parent.fd, path.filename().c_str(), 0755) != 0 && errno != EEXIST) {
    return refuse(root_ / path, "unwritable_file");
  }
  if (::fsync(parent.fd) != 0 && errno != EINVAL) return refuse(root_ / path, "unwritable_file");
  return {};
}

Result<bool> TreeFiles::remove_folder(const fs::path& path) const {
  const auto missing = missing_folders(path / "x");
  if (!missing) return std::unexpected(missing.error());
  if (!missing->empty()) return true;
  const auto opened = open_parent(path);
  if (!opened) return std::unexpected(opened.error());
  const Descriptor parent(*opened);
  fault_point("tree_folder_away");
  if (::unlinkat(parent.fd, path.filename().c_str(), AT_REMOVEDIR) != 0) {
    if (errno == ENOTEMPTY || errno == EEXIST) return false;
    return refuse(root_ / path, "unwritable_file");
  }
  if (::fsync(parent.fd) != 0 && errno != EINVAL) return refuse(root_ / path, "unwritable_file");
  return true;
}

Result<TreeLock> TreeLock::acquire(std::vector<fs::path> folders, const Deadline& deadline,
                                   const std::stop_token& stop) {
  // One order for everybody, so that two that want overlapping sets do not wait for each other.
  std::ranges::sort(folders);
  const auto repeated = std::ranges::unique(folders);
  folders.erase(repeated.begin(), repeated.end());
  TreeLock lock;
  for (const fs::path& folder : folders) {
    const int fd = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return refuse(folder, "unreadable_file");
    lock.fds_.push_back(fd);
    while (::flock(fd, LOCK_EX | LOCK_NB) != 0) {
      if (errno != EWOULDBLOCK && errno != EINTR) return refuse(folder, "unreadable_file");
      if (stop.stop_requested()) return fail("cancelled", "stopped while waiting for the tree");
      if (deadline.passed()) {
        return fail("tree_locked", folder.string() + ": another session works on this tree",
                    "wait for it, or stop it");
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  }
  return lock;
}

TreeLock::TreeLock(TreeLock&& other) noexcept : fds_(std::exchange(other.fds_, {})) {}
TreeLock& TreeLock::operator=(TreeLock&& other) noexcept {
  std::swap(fds_, other.fds_);
  return *this;
}
TreeLock::~TreeLock() {
  for (const int fd : fds_) ::close(fd);
}

std::vector<fs::path> folders_to_lock(const fs::path& root, const std::vector<fs::path>& files) {
  std::error_code error;
  std::set<fs::path> folders = {root};
  for (const fs::path& file : files) {
    fs::path folder = (root / file).parent_path();
    // Those that a change will make are below one that is there.
    while (!folder.empty() && !fs::is_directory(folder, error)) folder = folder.parent_path();
    folders.insert(fs::canonical(folder, error));
  }
  return {folders.begin(), folders.end()};
}

}  // namespace hyperloom::integrate
