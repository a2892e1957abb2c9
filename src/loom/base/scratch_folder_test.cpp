#include "loom/base/scratch_folder.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "loom/base/file.h"

namespace loom {
namespace {

TEST(ScratchFolder, GoesAwayWithWhatIsInIt) {
  std::string path;
  {
    const ScratchFolder folder("test");
    path = folder.path();
    ASSERT_NE(path, "") << folder.problem().reason;
    ASSERT_TRUE(write_file(path + "/file", "content").has_value());
  }
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(ScratchFolder, SaysWhyThereIsNone) {
  const char* const set = std::getenv("TMPDIR");
  const std::string before = set == nullptr ? "" : set;
  ::setenv("TMPDIR", "/nowhere/at/all", 1);
  const ScratchFolder folder("test");
  set == nullptr ? ::unsetenv("TMPDIR") : ::setenv("TMPDIR", before.c_str(), 1);
  EXPECT_EQ(folder.path(), "");
  EXPECT_EQ(folder.problem().path, "/nowhere/at/all");
  EXPECT_EQ(folder.problem().reason, "No such file or directory");
}

}  // namespace
}  // namespace loom
