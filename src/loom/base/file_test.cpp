#include "loom/base/file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

namespace loom {
namespace {

namespace fs = std::filesystem;

class Files : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "loom_file_test.XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string at(const std::string& name) const { return (folder_ / name).string(); }
  // Names in the folder, so that a forgotten temporary file shows.
  std::vector<std::string> names() const {
    std::vector<std::string> found;
    for (const auto& entry : fs::recursive_directory_iterator(folder_)) {
      found.push_back(entry.path().lexically_relative(folder_).string());
    }
    std::sort(found.begin(), found.end());
    return found;
  }
  static std::string content(const std::string& path) {
    auto text = read_file(path);
    return text ? *text : "<" + text.error().reason + ">";
  }
  using Names = std::vector<std::string>;

  fs::path folder_;
};

// Lets no file grow past `bytes` while it lives: the portable way to a disk that fills up.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) : old_handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &old_);
    const rlimit limit{bytes, old_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;
  ~FileSizeLimit() {
    ::setrlimit(RLIMIT_FSIZE, &old_);
    (void)std::signal(SIGXFSZ, old_handler_);
  }

 private:
  rlimit old_{};
  void (*old_handler_)(int);
};

TEST_F(Files, WriteThenReadGivesTheSameBytes) {
  std::string bytes("a\0b\r\n", 5);
  bytes.append(200'000, 'x');
  ASSERT_TRUE(write_file(at("out"), bytes));
  EXPECT_EQ(content(at("out")), bytes);
  ASSERT_TRUE(write_file(at("out"), "short"));
  EXPECT_EQ(content(at("out")), "short");
  EXPECT_EQ(names(), Names{"out"});
}

TEST_F(Files, ReadErrorNamesThePathAndTheReason) {
  const auto text = read_file(at("absent"));
  ASSERT_FALSE(text);
  EXPECT_EQ(text.error().path, at("absent"));
  EXPECT_EQ(text.error().reason, "No such file or directory");
}

TEST_F(Files, WriteThatFailsHalfWayKeepsTheOldContentAndLeavesNoTemporary) {
  ASSERT_TRUE(write_file(at("out"), "old"));
  {
    const FileSizeLimit full(4096);
    const auto written = write_file(at("out"), std::string(100'000, 'n'));
    ASSERT_FALSE(written);
    EXPECT_EQ(written.error().path, at("out"));
  }
  EXPECT_EQ(content(at("out")), "old");
  EXPECT_EQ(names(), Names{"out"});
}

TEST_F(Files, WriteToAFolderOrIntoAMissingFolderFailsAndLeavesNothing) {
  ASSERT_TRUE(fs::create_directory(at("folder")));
  EXPECT_FALSE(write_file(at("folder"), "text"));
  EXPECT_FALSE(write_file(at("missing/out"), "text"));
  EXPECT_EQ(names(), Names{"folder"});
}

TEST_F(Files, DeviceIsWrittenInPlace) {
  EXPECT_TRUE(write_file("/dev/null", "text"));
  struct stat info{};
  ASSERT_EQ(::stat("/dev/null", &info), 0);
  EXPECT_TRUE(S_ISCHR(info.st_mode));
}

TEST_F(Files, PipeOfAnOutputSetIsWrittenInPlaceOnCommit) {
  ASSERT_EQ(::mkfifo(at("pipe").c_str(), 0600), 0);
  const int reader = ::open(at("pipe").c_str(), O_RDONLY | O_NONBLOCK);
  ASSERT_GE(reader, 0);
  char buffer[8] = {};
  {
    OutputSet set;
    ASSERT_TRUE(set.add(at("pipe"), "text"));
    EXPECT_EQ(::read(reader, buffer, sizeof buffer), 0);
    ASSERT_TRUE(set.commit());
  }
  EXPECT_EQ(::read(reader, buffer, sizeof buffer), 4);
  EXPECT_STREQ(buffer, "text");
  ::close(reader);
  EXPECT_EQ(fs::status(at("pipe")).type(), fs::file_type::fifo);
  EXPECT_EQ(names(), Names{"pipe"});
}

TEST_F(Files, LinkStaysAndItsTargetIsReplaced) {
  ASSERT_TRUE(write_file(at("target"), "old"));
  fs::create_symlink("target", at("link"));
  ASSERT_TRUE(write_file(at("link"), "new"));
  EXPECT_EQ(content(at("target")), "new");
  OutputSet set;
  ASSERT_TRUE(set.add(at("link"), "newer"));
  ASSERT_TRUE(set.commit());
  EXPECT_EQ(content(at("target")), "newer");
  EXPECT_TRUE(fs::is_symlink(at("link")));
  EXPECT_EQ(names(), (Names{"link", "target"}));
}

TEST_F(Files, ReplacedFileKeepsItsPermissions) {
  ASSERT_TRUE(write_file(at("secret"), "old"));
  fs::permissions(at("secret"), fs::perms::owner_read | fs::perms::owner_write);
  ASSERT_TRUE(write_file(at("secret"), "new"));
  EXPECT_EQ(fs::status(at("secret")).permissions(), fs::perms::owner_read | fs::perms::owner_write);
}

TEST_F(Files, MappedFileShowsTheBytesAndMovesItsMapping) {
  ASSERT_TRUE(write_file(at("data"), "mapped bytes"));
  auto mapped = MappedFile::open(at("data"));
  ASSERT_TRUE(mapped);
  const std::byte* base = mapped->bytes().data();
  EXPECT_EQ(reinterpret_cast<uintptr_t>(base) % 4096, 0u);
  MappedFile moved = std::move(*mapped);
  ASSERT_EQ(moved.bytes().size(), 12u);
  EXPECT_EQ(moved.bytes().data(), base);
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(base), 12), "mapped bytes");
}

TEST_F(Files, MappedFileOfAnEmptyFileIsEmptyAndOfAFolderIsAnError) {
  ASSERT_TRUE(write_file(at("empty"), ""));
  const auto empty = MappedFile::open(at("empty"));
  ASSERT_TRUE(empty);
  EXPECT_TRUE(empty->bytes().empty());
  const auto folder = MappedFile::open(folder_.string());
  ASSERT_FALSE(folder);
  EXPECT_EQ(folder.error().reason, "is not a regular file");
}

TEST_F(Files, OutputSetShowsNothingUnderItsNamesBeforeCommit) {
  OutputSet set;
  ASSERT_TRUE(set.add(at("a"), "one"));
  ASSERT_TRUE(set.add(at("b"), "two"));
  EXPECT_FALSE(fs::exists(at("a")));
  ASSERT_TRUE(set.commit());
  EXPECT_EQ(content(at("a")), "one");
  EXPECT_EQ(content(at("b")), "two");
  EXPECT_EQ(names(), (Names{"a", "b"}));
}

TEST_F(Files, OutputSetWithoutCommitRemovesItsFilesAndFolders) {
  ASSERT_TRUE(write_file(at("kept"), "old"));
  {
    OutputSet set;
    ASSERT_TRUE(set.add_folder(at("deep/er")));
    ASSERT_TRUE(set.add(at("deep/er/a"), "one"));
    ASSERT_TRUE(set.add(at("kept"), "new"));
  }
  EXPECT_EQ(names(), Names{"kept"});
  EXPECT_EQ(content(at("kept")), "old");
}

TEST_F(Files, OutputSetKeepsAFolderThatExistedBefore) {
  ASSERT_TRUE(fs::create_directory(at("mine")));
  {
    OutputSet set;
    ASSERT_TRUE(set.add_folder(at("mine/")));
  }
  EXPECT_EQ(names(), Names{"mine"});
}

TEST_F(Files, OutputSetWhoseCommitFailsTakesItsNewFilesBack) {
  ASSERT_TRUE(fs::create_directory(at("gone")));
  {
    OutputSet set;
    ASSERT_TRUE(set.add(at("a"), "one"));
    ASSERT_TRUE(set.add(at("gone/b"), "two"));
    ASSERT_TRUE(set.add(at("c"), "three"));
    fs::remove_all(at("gone"));
    const auto committed = set.commit();
    ASSERT_FALSE(committed);
    EXPECT_EQ(committed.error().path, at("gone/b"));
  }
  EXPECT_EQ(names(), Names{});
}

TEST_F(Files, OutputSetLeavesNothingWhenADeviceIsFull) {
  {
    OutputSet set;
    ASSERT_TRUE(set.add(at("a"), "one"));
    ASSERT_TRUE(set.add("/dev/full", "two"));
    const auto committed = set.commit();
    ASSERT_FALSE(committed);
    EXPECT_EQ(committed.error().path, "/dev/full");
  }
  EXPECT_EQ(names(), Names{});
}

TEST_F(Files, OutputSetFolderOnTopOfAFileIsAnError) {
  ASSERT_TRUE(write_file(at("file"), "text"));
  OutputSet set;
  EXPECT_FALSE(set.add_folder(at("file")));
  EXPECT_FALSE(set.add_folder(at("file/below")));
}

}  // namespace
}  // namespace loom
