#include "hyperloom/integrate/diff.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <random>
#include <sstream>

namespace hyperloom::integrate {
namespace {

namespace fs = std::filesystem;

std::string describe(std::string_view text) {
  const auto entries = parse_diff(text, "p.diff");
  return entries ? compact(descriptors_of(*entries)) : entries.error().message;
}

TEST(Diff, ReadsWritesDeletesAndAdditions) {
  EXPECT_EQ(describe("diff --git a/x.loom b/x.loom\nindex 1..2 100644\n--- a/x.loom\n+++ b/x.loom\n"
                     "@@ -1,2 +1,2 @@\n-a\n+b\n c\n"
                     "diff --git a/new b/new\nnew file mode 100755\n--- /dev/null\n+++ b/new\n"
                     "@@ -0,0 +1 @@\n+x\n"
                     "diff --git a/gone b/gone\ndeleted file mode 100644\n--- a/gone\n"
                     "+++ /dev/null\n@@ -1 +0,0 @@\n-x\n"),
            R"([{"op":"write","path":"x.loom"},{"mode":"0755","op":"write","path":"new"},)"
            R"({"op":"delete","path":"gone"}])");
}

TEST(Diff, ARenameIsADeleteAndAWrite) {
  EXPECT_EQ(describe("diff --git a/old name b/new name\nsimilarity index 100%\n"
                     "rename from old name\nrename to new name\n"),
            R"([{"op":"delete","path":"old name"},{"op":"write","path":"new name"}])");
  EXPECT_EQ(describe("diff --git a/x b/y\ncopy from x\ncopy to y\n"),
            R"([{"op":"write","path":"y"}])");
}

TEST(Diff, ReadsModesBinariesAndQuotedNames) {
  EXPECT_EQ(describe("diff --git a/run b/run\nold mode 100644\nnew mode 100755\n"),
            R"([{"mode":"0755","op":"write","path":"run"}])");
  EXPECT_EQ(describe("diff --git a/w.bin b/w.bin\nindex 1..2\nBinary files a/w.bin and b/w.bin "
                     "differ\n"),
            R"([{"binary":true,"op":"write","path":"w.bin"}])");
  EXPECT_EQ(describe("diff --git \"a/t\\tb\" \"b/t\\tb\"\n--- \"a/t\\tb\"\n+++ \"b/t\\tb\"\n"
                     "@@ -1 +1 @@\n-a\n+b\n"),
            R"([{"op":"write","path":"t\tb"}])");
}

TEST(Diff, ReadsPlainDiffsAndDiffsWithoutPrefix) {
  EXPECT_EQ(describe("--- x.loom\t2026-01-01\n+++ x.loom\t2026-01-02\n@@ -1 +1 @@\n-a\n+b\n"),
            R"([{"op":"write","path":"x.loom"}])");
  EXPECT_EQ(describe("diff --git a/x a/x\n--- a/x\n+++ a/x\n@@ -1 +1 @@\n-a\n+b\n"),
            R"([{"op":"write","path":"a/x"}])");
}

TEST(Diff, LinesOfAHunkThatLookLikeHeadsAreItsOwn) {
  EXPECT_EQ(describe("--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n--- a/y\n+++ b/y\n c\n"),
            R"([{"op":"write","path":"x"}])");
}

TEST(Diff, NamesWhatIsWrongAndWhere) {
  EXPECT_EQ(describe(""), "p.diff:0: names no file");
  EXPECT_EQ(describe("hello\n"), "p.diff:1: names no file");
  EXPECT_EQ(describe("--- a/x\n+++ b/x\n@@ -1,3 +1,3 @@\n a\n"), "p.diff:4: the hunk ends early");
  EXPECT_EQ(describe("--- a/x\n+++ b/x\n@@ -1 +1 @@ \n+a\n+b\n"), "p.diff:5: the hunk is too long");
  EXPECT_EQ(describe("diff --git a/l b/l\nnew file mode 120000\n"),
            "p.diff:2: a mode that is not a regular file's");
}

// What is written must be read by `patch`, the tool that people have.
class Written : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "hyperloom_diff.XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { fs::remove_all(folder_); }
  void put(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name) << text;
  }
  std::string get(const std::string& name) const {
    std::ifstream stream(folder_ / name);
    return {std::istreambuf_iterator<char>(stream), {}};
  }
  bool patch(const std::string& diff) const {
    put("p.diff", diff);
    const std::string command =
        "cd " + folder_.string() + " && git apply --unsafe-paths p.diff 2>err";
    return std::system(command.c_str()) == 0;  // NOLINT: a test's own command
  }
  fs::path folder_;
};

TEST_F(Written, RandomEditsApply) {
  std::mt19937_64 random(99);
  for (int run = 0; run < 40; ++run) {
    const auto text = [&](size_t lines, const std::string& base) {
      std::istringstream stream(base);
      std::string result;
      for (std::string line; std::getline(stream, line);) {
        const auto what = random() % 10;
        if (what == 0) continue;
        if (what == 1) result += "new " + std::to_string(random() % 5) + "\n";
        result += line + "\n";
      }
      for (size_t i = 0; i < lines; ++i) result += std::to_string(random() % 7) + "\n";
      if (random() % 3 == 0) result += "no line end";
      return result;
    };
    const std::string before = text(random() % 60, "");
    const std::string after = text(random() % 3, before);
    if (before == after) continue;
    put("x", before);
    const std::string diff = write_diff("x", DiffSide{before}, DiffSide{after});
    ASSERT_TRUE(parse_diff(diff, "p")) << diff;
    ASSERT_TRUE(patch(diff)) << diff << get("err");
    ASSERT_EQ(get("x"), after) << diff;
  }
}

TEST_F(Written, AdditionsDeletionsAndModesApply) {
  ASSERT_TRUE(patch(write_diff("d/n w", std::nullopt, DiffSide{"a\nb\n", 0755})));
  EXPECT_EQ(get("d/n w"), "a\nb\n");
  EXPECT_NE(fs::status(folder_ / "d/n w").permissions() & fs::perms::owner_exec, fs::perms::none);
  ASSERT_TRUE(patch(write_diff("d/n w", DiffSide{"a\nb\n", 0755}, DiffSide{"a\nb\n", 0644})));
  EXPECT_EQ(fs::status(folder_ / "d/n w").permissions() & fs::perms::owner_exec, fs::perms::none);
  ASSERT_TRUE(patch(write_diff("d/n w", DiffSide{"a\nb\n"}, std::nullopt)));
  EXPECT_FALSE(fs::exists(folder_ / "d/n w"));
  EXPECT_EQ(write_diff("x", DiffSide{"a"}, DiffSide{"a"}), "");
}

TEST(Diff, ManyChangedLinesAreReplacedAsAWhole) {
  std::string before;
  std::string after;
  for (int i = 0; i < 3000; ++i) {
    before += std::to_string(i) + " a\n";
    after += std::to_string(i) + " b\n";
  }
  EXPECT_TRUE(write_diff("x", DiffSide{before}, DiffSide{after}).contains("@@ -1,3000 +1,3000 @@"));
}

}  // namespace
}  // namespace hyperloom::integrate
