#include "loom/base/file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <utility>

namespace loom {
namespace {

namespace fs = std::filesystem;

std::unexpected<FileError> system_error(const std::string& path, int error = errno) {
  return std::unexpected(FileError{path, std::strerror(error)});
}

struct Descriptor {
  int fd = -1;
  explicit Descriptor(int value) : fd(value) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (fd >= 0) ::close(fd);
  }
};

FileResult<std::string> read_descriptor(int fd, const std::string& path) {
  std::string content;
  char buffer[64 * 1024];
  for (;;) {
    const ssize_t count = ::read(fd, buffer, sizeof buffer);
    if (count == 0) return content;
    if (count < 0) {
      if (errno == EINTR) continue;
      return system_error(path);
    }
    content.append(buffer, static_cast<size_t>(count));
  }
}

FileResult<void> write_descriptor(int fd, const std::string& path, std::string_view content) {
  while (!content.empty()) {
    const ssize_t count = ::write(fd, content.data(), content.size());
    if (count < 0) {
      if (errno == EINTR) continue;
      return system_error(path);
    }
    content.remove_prefix(static_cast<size_t>(count));
  }
  return {};
}

std::string temporary_beside(const std::string& path) {
  static std::atomic<unsigned> counter{0};
  return fmt::format("{}.{}.{}.tmp", path, ::getpid(), counter.fetch_add(1));
}

// Where the content of `path` lives: behind symbolic links, which stay.
std::string target_of(const std::string& path) {
  std::error_code error;
  if (!fs::is_symlink(path, error)) return path;
  const fs::path target = fs::canonical(path, error);
  return error ? path : target.string();
}

// Writes and syncs a new temporary file next to `target`, with the permissions of the file that it
// will replace; removes it again on failure. Errors name `path`.
FileResult<std::string> stage(const std::string& path, const std::string& target,
                              std::string_view content) {
  struct stat old{};
  const bool replaces = ::stat(target.c_str(), &old) == 0;
  if (replaces && S_ISDIR(old.st_mode)) return std::unexpected(FileError{path, "is a directory"});
  std::string temporary = temporary_beside(target);
  Descriptor file(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
  if (file.fd < 0) return system_error(path);
  if (replaces) (void)::fchmod(file.fd, old.st_mode & 0777);
  auto written = write_descriptor(file.fd, path, content);
  if (written && ::fsync(file.fd) != 0 && errno != EINVAL) written = system_error(path);
  if (!written) {
    ::unlink(temporary.c_str());
    return std::unexpected(written.error());
  }
  return temporary;
}

bool is_standard_output(const std::string& path) { return path == "-" || path == "/dev/stdout"; }

// Standard output, devices, pipes and sockets cannot be replaced by renaming; they are written in
// place.
bool is_special(const std::string& path) {
  struct stat info;
  return is_standard_output(path) ||
         (::stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode));
}

FileResult<void> write_special(const std::string& path, std::string_view content) {
  if (is_standard_output(path)) {
    return write_descriptor(STDOUT_FILENO, "standard output", content);
  }
  Descriptor file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (file.fd < 0) return system_error(path);
  return write_descriptor(file.fd, path, content);
}

}  // namespace

FileResult<std::string> read_file(const std::string& path) {
  if (path == "-") return read_descriptor(STDIN_FILENO, "standard input");
  Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.fd < 0) return system_error(path);
  return read_descriptor(file.fd, path);
}

FileResult<MappedFile> MappedFile::open(const std::string& path) {
  Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.fd < 0) return system_error(path);
  struct stat info;
  if (::fstat(file.fd, &info) != 0) return system_error(path);
  if (!S_ISREG(info.st_mode)) return std::unexpected(FileError{path, "is not a regular file"});
  MappedFile mapped;
  mapped.size_ = static_cast<size_t>(info.st_size);
  if (mapped.size_ == 0) return mapped;
  void* data = ::mmap(nullptr, mapped.size_, PROT_READ, MAP_PRIVATE, file.fd, 0);
  if (data == MAP_FAILED) {
    mapped.size_ = 0;
    return system_error(path);
  }
  mapped.data_ = static_cast<const std::byte*>(data);
  return mapped;
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), size_);
}

FileResult<void> write_file(const std::string& path, std::string_view content) {
  if (is_special(path)) return write_special(path, content);
  const std::string target = target_of(path);
  auto temporary = stage(path, target, content);
  if (!temporary) return std::unexpected(temporary.error());
  if (::rename(temporary->c_str(), target.c_str()) != 0) {
    const int error = errno;
    ::unlink(temporary->c_str());
    return system_error(path, error);
  }
  return {};
}

OutputSet::~OutputSet() {
  for (const Staged& file : staged_) ::unlink(file.temporary.c_str());
  for (auto it = created_folders_.rbegin(); it != created_folders_.rend(); ++it) {
    ::rmdir(it->c_str());  // Fails, as wanted, for a folder that holds anything.
  }
}

FileResult<void> OutputSet::add(const std::string& path, std::string_view content) {
  if (is_special(path)) {
    special_.push_back({path, std::string(content)});
    return {};
  }
  std::string target = target_of(path);
  auto temporary = stage(path, target, content);
  if (!temporary) return std::unexpected(temporary.error());
  staged_.push_back({std::move(*temporary), std::move(target)});
  return {};
}

FileResult<void> OutputSet::add_folder(const std::string& path) {
  std::vector<fs::path> missing;
  std::error_code error;
  for (fs::path folder = path; !folder.empty() && !fs::exists(folder, error);
       folder = folder.parent_path()) {
    missing.push_back(folder);
  }
  for (auto it = missing.rbegin(); it != missing.rend(); ++it) {
    if (::mkdir(it->c_str(), 0755) == 0) {
      created_folders_.push_back(it->string());
    } else if (errno != EEXIST) {
      return system_error(path);
    }
  }
  if (!fs::is_directory(path, error)) return std::unexpected(FileError{path, "is not a folder"});
  return {};
}

FileResult<void> OutputSet::commit() {
  // Replaced files cannot be brought back, so what is more likely to fail comes first.
  for (const Special& output : special_) {
    if (auto written = write_special(output.path, output.content); !written) return written;
  }
  special_.clear();
  std::vector<std::string> fresh;
  for (size_t i = 0; i < staged_.size(); ++i) {
    const Staged& file = staged_[i];
    const bool existed = ::access(file.path.c_str(), F_OK) == 0;
    if (::rename(file.temporary.c_str(), file.path.c_str()) != 0) {
      const auto failure = system_error(file.path);
      for (const std::string& path : fresh) ::unlink(path.c_str());
      return failure;
    }
    if (!existed) fresh.push_back(file.path);
  }
  staged_.clear();
  created_folders_.clear();
  return {};
}

}  // namespace loom
