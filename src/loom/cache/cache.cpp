#include "loom/cache/cache.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <vector>

#include "loom/base/hash.h"

namespace loom {
namespace {

namespace fs = std::filesystem;

// An entry: the mark, the SHA-256 of key and value in hexadecimal, and the value.
constexpr std::string_view kEntryMark = "LOOMCAC1";
constexpr size_t kHashSize = 64;
constexpr size_t kHeaderSize = kEntryMark.size() + kHashSize;
constexpr uint64_t kBlock = 4096;
constexpr std::string_view kTemporaryMark = "new-";
// A temporary file this old belongs to a process that is gone.
constexpr std::chrono::hours kAbandoned{1};

uint64_t footprint(uint64_t size) { return (size + kBlock - 1) / kBlock * kBlock; }

std::unexpected<FileError> system_error(const std::string& path, int error = errno) {
  return std::unexpected(FileError{path, std::strerror(error)});
}

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }

 private:
  int fd_;
};

bool write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(fd, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return false;
    bytes.remove_prefix(static_cast<size_t>(count));
  }
  return true;
}

std::optional<std::string> read_all(int fd, size_t size) {
  std::string bytes(size, '\0');
  size_t done = 0;
  while (done < size) {
    const ssize_t count = ::read(fd, bytes.data() + done, size - done);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return std::nullopt;
    done += static_cast<size_t>(count);
  }
  return bytes;
}

std::string entry_hash(std::string_view key, std::string_view value) {
  std::string text(key);
  text += value;
  return sha256_hex(text);
}

// How many bytes the folder holds at most, shared by all processes. A process that dies leaves it
// too large, never too small; looking through the folder sets it right.
class Total {
 public:
  explicit Total(const std::string& path)
      : file_(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600)) {
    if (!file_.valid()) return;
    int locked;
    do {
      locked = ::flock(file_.get(), LOCK_EX);
    } while (locked != 0 && errno == EINTR);
    good_ = locked == 0;
  }
  bool locked() const { return good_; }
  std::optional<uint64_t> read() const {
    uint64_t words[2];
    if (::pread(file_.get(), words, sizeof words, 0) != ssize_t{sizeof words}) return std::nullopt;
    if (words[1] != ~words[0]) return std::nullopt;
    return words[0];
  }
  bool write(uint64_t total) const {
    const uint64_t words[2] = {total, ~total};
    return ::pwrite(file_.get(), words, sizeof words, 0) == ssize_t{sizeof words};
  }

 private:
  Descriptor file_;
  bool good_ = false;
};

struct Entry {
  std::string path;
  uint64_t size;
  fs::file_time_type used;
};

// All entries; temporary files that nobody will finish are removed on the way.
std::vector<Entry> list_entries(const std::string& folder) {
  std::vector<Entry> entries;
  std::error_code error;
  const auto now = fs::file_time_type::clock::now();
  fs::recursive_directory_iterator it(folder, error);
  while (!error && it != fs::recursive_directory_iterator()) {
    std::error_code gone;  // an entry that another process removed meanwhile
    const fs::path path = it->path();
    if (it->is_regular_file(gone)) {
      const uint64_t size = it->file_size(gone);
      const auto used = it->last_write_time(gone);
      const std::string name = path.filename().string();
      if (!gone && name.starts_with(kTemporaryMark) && now - used > kAbandoned) {
        fs::remove(path, gone);
      } else if (!gone && it.depth() > 0) {
        entries.push_back({path.string(), footprint(size), used});
      }
    }
    it.increment(error);
  }
  return entries;
}

}  // namespace

std::string cache_key(std::span<const std::string_view> parts) {
  std::string text;
  for (const std::string_view part : parts) {
    text += std::to_string(part.size());
    text += ':';
    text += part;
  }
  return sha256_hex(text);
}

Cache::Cache(CacheOptions options)
    : options_(std::move(options)), entries_((fs::path(options_.folder) / "v1").string()) {}

FileResult<std::unique_ptr<Cache>> Cache::open(CacheOptions options) {
  std::unique_ptr<Cache> cache(new Cache(std::move(options)));
  std::error_code error;
  fs::create_directories(cache->options_.folder, error);
  if (error) return system_error(cache->options_.folder, error.value());
  if (::mkdir(cache->entries_.c_str(), 0700) != 0 && errno != EEXIST) {
    return system_error(cache->entries_);
  }
  struct stat info;
  if (::lstat(cache->entries_.c_str(), &info) != 0) return system_error(cache->entries_);
  if (!S_ISDIR(info.st_mode)) return system_error(cache->entries_, ENOTDIR);
  if (info.st_uid != ::geteuid() || (info.st_mode & 022) != 0) {
    return std::unexpected(FileError{cache->entries_, "others may write into it"});
  }
  if (::access(cache->entries_.c_str(), W_OK) != 0) return system_error(cache->entries_);
  return cache;
}

std::string Cache::path_of(std::string_view key) const {
  return (fs::path(entries_) / key.substr(0, 2) / key).string();
}

std::optional<std::string> Cache::get(std::string_view key) {
  const std::string path = path_of(key);
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat info;
  if (!file.valid() || ::fstat(file.get(), &info) != 0) {
    ++misses_;
    return std::nullopt;
  }
  const auto size = static_cast<size_t>(info.st_size);
  std::optional<std::string> bytes;
  if (S_ISREG(info.st_mode) && size >= kHeaderSize && size <= options_.max_bytes) {
    bytes = read_all(file.get(), size);
  }
  if (bytes && bytes->starts_with(kEntryMark) &&
      std::string_view(*bytes).substr(kEntryMark.size(), kHashSize) ==
          entry_hash(key, std::string_view(*bytes).substr(kHeaderSize))) {
    // The time of the last use is the time of the file.
    (void)::futimens(file.get(), nullptr);
    ++hits_;
    bytes->erase(0, kHeaderSize);
    return bytes;
  }
  ::unlink(path.c_str());
  ++damaged_;
  ++misses_;
  return std::nullopt;
}

FileResult<void> Cache::put(std::string_view key, std::string_view value) {
  const std::string path = path_of(key);
  const uint64_t size = footprint(kHeaderSize + value.size());
  if (size > options_.max_bytes) {
    return std::unexpected(FileError{path, "the value is larger than the cache"});
  }
  const fs::path folder = fs::path(path).parent_path();
  if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) return system_error(folder.string());
  std::string temporary = (folder / (std::string(kTemporaryMark) + "XXXXXX")).string();
  const Descriptor file(::mkostemp(temporary.data(), O_CLOEXEC));
  if (!file.valid()) return system_error(path);
  const std::string header = std::string(kEntryMark) + entry_hash(key, value);
  // No sync: what a crash leaves half written does not have its hash.
  FileResult<void> result;
  if (!write_all(file.get(), header) || !write_all(file.get(), value)) result = system_error(path);
  if (result) result = publish(temporary, path, size);
  if (!result) ::unlink(temporary.c_str());
  return result;
}

FileResult<void> Cache::publish(const std::string& temporary, const std::string& path,
                                uint64_t size) {
  const std::string total_path = (fs::path(entries_) / "total").string();
  const Total total(total_path);
  if (!total.locked()) return system_error(total_path);
  const std::optional<uint64_t> known = total.read();
  uint64_t held = known.value_or(options_.max_bytes);
  // The space is taken before the entry appears, so that a process that dies between leaves the
  // total too large.
  if (held > options_.max_bytes - size) held = evict(size);
  if (!total.write(held + size)) return system_error(total_path);
  if (::rename(temporary.c_str(), path.c_str()) != 0) return system_error(path);
  ++stored_;
  return {};
}

// Removes entries, those used longest ago first, until there is `room` and a quarter of the limit
// besides, or what is left fits after all. Returns what is held then. The lock is held.
uint64_t Cache::evict(uint64_t room) {
  std::vector<Entry> entries = list_entries(entries_);
  // The temporary file of the entry to come, and those of others, take their space anyway.
  std::erase_if(entries, [](const Entry& entry) {
    return fs::path(entry.path).filename().string().starts_with(kTemporaryMark);
  });
  uint64_t held = 0;
  for (const Entry& entry : entries) held += entry.size;
  if (held <= options_.max_bytes - room) return held;
  std::ranges::sort(entries, [](const Entry& a, const Entry& b) {
    return a.used != b.used ? a.used < b.used : a.path < b.path;
  });
  const uint64_t limit = options_.max_bytes - room;
  const uint64_t target = limit - std::min(limit, options_.max_bytes / 4);
  for (const Entry& entry : entries) {
    if (held <= target) break;
    if (::unlink(entry.path.c_str()) != 0 && errno != ENOENT) continue;
    held -= entry.size;
    ++evicted_;
  }
  return held;
}

void Cache::drop(std::string_view key) { ::unlink(path_of(key).c_str()); }

CacheCounts Cache::counts() const { return {hits_, misses_, damaged_, stored_, evicted_}; }

}  // namespace loom
