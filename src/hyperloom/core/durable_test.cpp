#include "hyperloom/core/durable.h"

#include <gtest/gtest.h>

#include <fstream>

#include "hyperloom/core/testing.h"
#include "loom/base/file.h"

namespace hyperloom {
namespace {

TEST(Durable, FullDiskCutsTheLineOff) {
  const TempFolder folder;
  const auto file = folder / "log.jsonl";
  ASSERT_TRUE(append_line(file, "one"));
  {
    const FullDisk full(10);
    EXPECT_EQ(append_line(file, "a line that is too long").error().error_class, "unwritable_file");
  }
  ASSERT_TRUE(append_line(file, "two"));
  EXPECT_EQ(loom::read_file(file.string()).value(), "one\ntwo\n");
}

TEST(Durable, LinksAreNotFollowed) {
  const TempFolder folder;
  std::ofstream(folder / "victim") << "keep";
  std::filesystem::create_symlink(folder / "victim", folder / "link");
  EXPECT_FALSE(write_durable(folder / "link", "x"));
  EXPECT_FALSE(append_line(folder / "link", "x"));
  EXPECT_EQ(loom::read_file((folder / "victim").string()).value(), "keep");
}

TEST(Durable, FolderIsMadeWithItsParents) {
  const TempFolder folder;
  EXPECT_TRUE(make_folder(folder / "a" / "b" / "c"));
  EXPECT_TRUE(make_folder(folder / "a" / "b" / "c"));
  EXPECT_TRUE(std::filesystem::is_directory(folder / "a" / "b" / "c"));
  std::ofstream(folder / "file") << "";
  EXPECT_FALSE(make_folder(folder / "file" / "d"));
  EXPECT_FALSE(make_folder(folder / "file"));
}

}  // namespace
}  // namespace hyperloom
