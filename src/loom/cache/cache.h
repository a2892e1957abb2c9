// A folder of results that are expensive to make again, found by what they were made from.
//
//   auto cache = Cache::open({.folder = "kernels"});
//   const std::string key = cache_key({compiler_identity, request});
//   if (auto code = (*cache)->get(key)) return *code;
//   ... make it ...
//   (*cache)->put(key, code);   // a failure costs nothing but the next hit
//
// Any number of threads and processes may use one folder. An entry appears whole or not at all, and
// is checked against its hash whenever it is read: what was damaged is removed and counts as
// missing. The folder never holds more than its limit, counted in whole 4 KiB blocks; the entries
// that were used longest ago go first. The files are in `v1/` below the folder, which belongs to
// this user alone, because what comes out of it may be run.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "loom/base/file.h"

namespace loom {

struct CacheOptions {
  std::string folder;  // created when it is missing
  uint64_t max_bytes = uint64_t{1} << 30;
};

// What one Cache object has done; other processes count for themselves.
struct CacheCounts {
  uint64_t hits = 0;
  uint64_t misses = 0;   // damaged entries included
  uint64_t damaged = 0;  // entries that were found damaged and removed
  uint64_t stored = 0;
  uint64_t evicted = 0;
};

// The name of what is made from `parts` in this order: their SHA-256, each with its length.
std::string cache_key(std::span<const std::string_view> parts);

// Thread-safe.
class Cache {
 public:
  // Fails when the folder cannot be made or written, or when others may write into it.
  static FileResult<std::unique_ptr<Cache>> open(CacheOptions options);
  Cache(const Cache&) = delete;
  Cache& operator=(const Cache&) = delete;

  // The bytes stored under a key of cache_key(); nothing where there are none, or not whole.
  std::optional<std::string> get(std::string_view key);
  // Stores bytes, in place of those that are there. On failure (a full disk, a value above the
  // limit) nothing is stored and no file is left.
  FileResult<void> put(std::string_view key, std::string_view value);
  // Removes an entry, as one that turned out to be of no use.
  void drop(std::string_view key);

  CacheCounts counts() const;
  const std::string& folder() const { return options_.folder; }

 private:
  explicit Cache(CacheOptions options);
  std::string path_of(std::string_view key) const;
  FileResult<void> publish(const std::string& temporary, const std::string& path, uint64_t size);
  uint64_t evict(uint64_t room);

  CacheOptions options_;
  std::string entries_;  // folder of the entries
  std::atomic<uint64_t> hits_ = 0, misses_ = 0, damaged_ = 0, stored_ = 0, evicted_ = 0;
};

}  // namespace loom
