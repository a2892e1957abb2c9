#include "hyperloom/core/durable.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <vector>

#include "loom/base/file.h"

namespace hyperloom {
namespace {

namespace fs = std::filesystem;

std::unexpected<Error> unwritable(const fs::path& path, std::string_view reason) {
  return fail("unwritable_file", fmt::format("{}: {}", path.string(), reason));
}

struct Descriptor {
  explicit Descriptor(int value) : fd(value) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (fd >= 0) ::close(fd);
  }
  int fd;
};

fs::path folder_of(const fs::path& path) {
  const fs::path parent = path.parent_path();
  return parent.empty() ? fs::path(".") : parent;
}

// 0, or the error of the system.
int write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(fd, bytes.data(), bytes.size());
    if (count < 0) {
      if (errno == EINTR) continue;
      return errno;
    }
    bytes.remove_prefix(static_cast<size_t>(count));
  }
  return 0;
}

}  // namespace

Result<void> sync_folder(const fs::path& path) {
  const Descriptor folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  // Some file systems cannot sync a folder and say EINVAL; there is nothing more to do on those.
  if (folder.fd < 0 || (::fsync(folder.fd) != 0 && errno != EINVAL)) {
    return unwritable(path, std::strerror(errno));
  }
  return {};
}

Result<void> write_durable(const fs::path& path, std::string_view content) {
  std::error_code error;
  if (fs::is_symlink(path, error)) return unwritable(path, "is a symbolic link");
  if (auto written = loom::write_file(path.string(), content); !written) {
    return unwritable(path, written.error().reason);
  }
  return sync_folder(folder_of(path));
}

Result<void> append_line(const fs::path& path, std::string_view line) {
  constexpr int kFlags = O_WRONLY | O_APPEND | O_CLOEXEC | O_NOFOLLOW;
  bool fresh = false;
  int opened = ::open(path.c_str(), kFlags);
  if (opened < 0 && errno == ENOENT) {
    opened = ::open(path.c_str(), kFlags | O_CREAT, 0644);
    fresh = true;
  }
  const Descriptor file(opened);
  struct stat before{};
  if (file.fd < 0 || ::fstat(file.fd, &before) != 0) return unwritable(path, std::strerror(errno));
  std::string text(line);
  text += '\n';
  int error = write_all(file.fd, text);
  if (error == 0 && ::fsync(file.fd) != 0 && errno != EINVAL) error = errno;
  if (error != 0) {
    [[maybe_unused]] const int cut = ::ftruncate(file.fd, before.st_size);
    return unwritable(path, std::strerror(error));
  }
  if (fresh) return sync_folder(folder_of(path));
  return {};
}

Result<void> make_folder(const fs::path& path) {
  std::vector<fs::path> missing;
  std::error_code error;
  for (fs::path at = path; !at.empty() && !fs::exists(at, error); at = at.parent_path()) {
    missing.push_back(at);
    if (!at.has_relative_path()) break;
  }
  for (auto at = missing.rbegin(); at != missing.rend(); ++at) {
    if (::mkdir(at->c_str(), 0755) != 0 && errno != EEXIST) {
      return unwritable(*at, std::strerror(errno));
    }
    if (auto synced = sync_folder(folder_of(*at)); !synced) return synced;
  }
  if (!fs::is_directory(path, error)) return unwritable(path, "is not a folder");
  return {};
}

}  // namespace hyperloom
