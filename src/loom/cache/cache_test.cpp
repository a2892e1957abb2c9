#include "loom/cache/cache.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fstream>
#include <optional>
#include <thread>
#include <vector>

#include "loom/cache/build_id.h"

namespace loom {
namespace {

namespace fs = std::filesystem;

std::string key_of(uint64_t number) {
  const std::string text = std::to_string(number);
  const std::string_view part = text;
  return cache_key({&part, 1});
}

std::string value_of(uint64_t number, size_t size = 2000) {
  std::string value;
  while (value.size() < size) value += std::to_string(number) + ";";
  value.resize(size);
  return value;
}

class CacheTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "loom-cache-XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::unique_ptr<Cache> open(uint64_t max_bytes = 1 << 20) {
    auto cache = Cache::open({folder_, max_bytes});
    EXPECT_TRUE(cache.has_value()) << cache.error().reason;
    return std::move(*cache);
  }
  fs::path file_of(const std::string& key) const {
    return fs::path(folder_) / "v1" / key.substr(0, 2) / key;
  }
  // Entries and temporary files, without the total.
  std::vector<fs::path> files() const {
    std::vector<fs::path> found;
    for (const auto& entry : fs::recursive_directory_iterator(folder_)) {
      if (entry.is_regular_file() && entry.path().filename() != "total") {
        found.push_back(entry.path());
      }
    }
    return found;
  }
  uint64_t held() const {
    uint64_t bytes = 0;
    for (const fs::path& path : files()) bytes += (fs::file_size(path) + 4095) / 4096 * 4096;
    return bytes;
  }

  std::string folder_;
};

TEST_F(CacheTest, WhatIsStoredIsFoundByAnotherObject) {
  EXPECT_FALSE(open()->get(key_of(1)));
  ASSERT_TRUE(open()->put(key_of(1), value_of(1)));
  EXPECT_EQ(open()->get(key_of(1)), value_of(1));
  ASSERT_TRUE(open()->put(key_of(1), ""));
  EXPECT_EQ(open()->get(key_of(1)), "");
}

TEST_F(CacheTest, KeysTellPartsApart) {
  const std::string_view one[] = {"ab", "c"};
  const std::string_view other[] = {"a", "bc"};
  EXPECT_NE(cache_key(one), cache_key(other));
  EXPECT_EQ(cache_key(one).size(), 64u);
}

TEST_F(CacheTest, EveryFlippedBitAndEveryTruncationIsFound) {
  const auto cache = open();
  const std::string key = key_of(7), value = value_of(7, 40);
  ASSERT_TRUE(cache->put(key, value));
  std::string whole;
  {
    std::ifstream in(file_of(key), std::ios::binary);
    whole.assign(std::istreambuf_iterator<char>(in), {});
  }
  const auto replace = [&](const std::string& bytes) {
    std::ofstream(file_of(key), std::ios::binary | std::ios::trunc) << bytes;
  };
  uint64_t damaged = 0;
  for (size_t bit = 0; bit < whole.size() * 8; ++bit) {
    std::string bytes = whole;
    bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << (bit % 8)));
    replace(bytes);
    ASSERT_FALSE(cache->get(key)) << "bit " << bit;
    ASSERT_FALSE(fs::exists(file_of(key)));
    ++damaged;
  }
  for (size_t size = 0; size < whole.size(); ++size) {
    replace(whole.substr(0, size));
    ASSERT_FALSE(cache->get(key)) << "size " << size;
    ++damaged;
  }
  EXPECT_EQ(cache->counts().damaged, damaged);
  ASSERT_TRUE(cache->put(key, value));
  EXPECT_EQ(cache->get(key), value);
}

TEST_F(CacheTest, AnEntryUnderAnotherNameIsNotTaken) {
  const auto cache = open();
  ASSERT_TRUE(cache->put(key_of(1), value_of(1)));
  ASSERT_TRUE(cache->put(key_of(2), value_of(2)));
  fs::copy_file(file_of(key_of(1)), file_of(key_of(2)), fs::copy_options::overwrite_existing);
  EXPECT_FALSE(cache->get(key_of(2)));
}

TEST_F(CacheTest, TheEntryUsedLongestAgoGoesFirst) {
  const auto cache = open(16 * 4096);
  for (uint64_t i = 0; i < 16; ++i) ASSERT_TRUE(cache->put(key_of(i), value_of(i)));
  for (uint64_t i = 0; i < 16; ++i) {
    const auto used =
        fs::file_time_type::clock::now() - std::chrono::hours(24) + std::chrono::minutes(i);
    fs::last_write_time(file_of(key_of(i)), used);
  }
  EXPECT_TRUE(cache->get(key_of(0)));  // now the youngest
  ASSERT_TRUE(cache->put(key_of(16), value_of(16)));
  EXPECT_LE(held(), 16u * 4096);
  EXPECT_TRUE(cache->get(key_of(0)));
  EXPECT_TRUE(cache->get(key_of(16)));
  EXPECT_TRUE(cache->get(key_of(15)));
  EXPECT_FALSE(cache->get(key_of(1)));
  EXPECT_GT(cache->counts().evicted, 0u);
}

TEST_F(CacheTest, TheLimitHoldsWhateverIsStored) {
  const auto cache = open(100 * 4096);
  for (uint64_t i = 0; i < 1000; ++i) {
    ASSERT_TRUE(cache->put(key_of(i), value_of(i, (i * 37) % 20000)));
    if (i % 50 == 0) {
      ASSERT_LE(held(), 100u * 4096);
    }
  }
  EXPECT_LE(held(), 100u * 4096);
  EXPECT_FALSE(cache->put(key_of(1), std::string(101 * 4096, 'x')));
  // A total that nobody can read is counted again.
  std::ofstream(fs::path(folder_) / "v1" / "total", std::ios::trunc) << "?";
  for (uint64_t i = 0; i < 200; ++i) ASSERT_TRUE(cache->put(key_of(i), value_of(i)));
  EXPECT_LE(held(), 100u * 4096);
}

TEST_F(CacheTest, AFileSizeLimitLeavesNoEntry) {
  const pid_t child = ::fork();
  if (child == 0) {
    std::signal(SIGXFSZ, SIG_IGN);
    auto cache = Cache::open({folder_, 1 << 20});
    const rlimit limit{1024, 1024};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    const auto stored = (*cache)->put(key_of(1), value_of(1, 5000));
    ::_exit(stored.has_value() || stored.error().reason.empty() ? 1 : 0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(files().empty());
  EXPECT_FALSE(open()->get(key_of(1)));
}

// A file system of 64 KiB over the folder, for this process alone; the reason when there is none.
std::optional<int> mount_small(const std::string& folder) {
  if (::unshare(CLONE_NEWNS) != 0 && ::unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) return errno;
  // What is mounted here stays here.
  if (::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return errno;
  if (::mount("tmpfs", folder.c_str(), "tmpfs", 0, "size=64k,mode=700") != 0) return errno;
  return std::nullopt;
}

// Fills it up. Returns a process status: 0, or which step went wrong.
int fill_up(const std::string& folder) {
  auto cache = Cache::open({folder, 1 << 20});
  if (!cache) return 1;
  uint64_t stored = 0;
  FileResult<void> last;
  while (stored < 100 && (last = (*cache)->put(key_of(stored), value_of(stored, 6000)))) ++stored;
  if (last || stored == 0) return 2;
  if (last.error().reason.find("No space left") == std::string::npos) return 3;
  // What there was room for is whole; of what there was none for there is nothing.
  if ((*cache)->get(key_of(stored))) return 4;
  uint64_t files = 0;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    files += entry.is_regular_file() && entry.path().filename() != "total" ? 1 : 0;
  }
  if (files != stored) return 5;
  for (uint64_t i = 0; i < stored; ++i) {
    if ((*cache)->get(key_of(i)) != value_of(i, 6000)) return 6;
  }
  (*cache)->drop(key_of(0));
  if (!(*cache)->put(key_of(stored), value_of(stored, 6000))) return 7;
  if ((*cache)->get(key_of(stored)) != value_of(stored, 6000)) return 8;
  return (*cache)->counts().damaged == 0 ? 0 : 9;
}

TEST_F(CacheTest, AFullDiskLeavesNoEntryAndDamagesNone) {
  constexpr int kNotMounted = 100;  // and up, by the reason
  const pid_t child = ::fork();
  if (child == 0) {
    const std::optional<int> refused = mount_small(folder_);
    ::_exit(refused ? kNotMounted + std::min(*refused, 100) : fill_up(folder_));
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) >= kNotMounted) {
    GTEST_SKIP() << "no file system may be mounted here: "
                 << std::strerror(WEXITSTATUS(status) - kNotMounted);
  }
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_TRUE(files().empty());
}

// Reads what is there and checks it, stores what is not. Returns a process status.
int hammer(const std::string& folder, uint64_t seed) {
  auto cache = Cache::open({folder, 64 * 4096});
  if (!cache) return 2;
  for (uint64_t i = 0; i < 400; ++i) {
    const uint64_t number = (i * 7 + seed * 13) % 96;
    const std::string key = key_of(number);
    if (const auto found = (*cache)->get(key)) {
      if (*found != value_of(number)) return 3;
    } else if (!(*cache)->put(key, value_of(number))) {
      return 4;
    }
  }
  return (*cache)->counts().damaged == 0 ? 0 : 5;
}

TEST_F(CacheTest, ProcessesShareAFolder) {
  std::vector<pid_t> children;
  for (uint64_t i = 0; i < 4; ++i) {
    const pid_t child = ::fork();
    if (child == 0) ::_exit(hammer(folder_, i));
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(WEXITSTATUS(status), 0);
    EXPECT_TRUE(WIFEXITED(status));
  }
  EXPECT_LE(held(), 64u * 4096);
}

TEST_F(CacheTest, ThreadsShareAnObject) {
  const auto cache = open(64 * 4096);
  std::vector<std::jthread> threads;
  std::atomic<int> wrong = 0;
  for (uint64_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (uint64_t i = 0; i < 300; ++i) {
        const uint64_t number = (i * 5 + t) % 80;
        if (const auto found = cache->get(key_of(number))) {
          wrong += *found != value_of(number);
        } else {
          wrong += !cache->put(key_of(number), value_of(number));
        }
      }
    });
  }
  threads.clear();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(cache->counts().hits + cache->counts().misses, 1200u);
}

TEST_F(CacheTest, AFolderThatOthersMayWriteIsRefused) {
  open();
  ASSERT_EQ(::chmod((folder_ + "/v1").c_str(), 0777), 0);
  EXPECT_FALSE(Cache::open({folder_}));
  std::ofstream(folder_ + "/file") << "x";
  EXPECT_FALSE(Cache::open({folder_ + "/file"}));
  EXPECT_FALSE(Cache::open({folder_ + "/file/below"}));
}

TEST(BuildId, IsThere) { EXPECT_EQ(build_id().size(), 64u); }

}  // namespace
}  // namespace loom
