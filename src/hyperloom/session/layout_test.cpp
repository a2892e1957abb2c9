#include "hyperloom/session/layout.h"

#include <gtest/gtest.h>

#include <set>

#include "hyperloom/core/testing.h"

namespace hyperloom::session {
namespace {

Environment with_root(const std::string& root) {
  return Environment(std::map<std::string, std::string>{{"USER_DATA_PATH", root}});
}

TEST(Spec_6_5, DataRootIsTheVariableElseTheSharedFolderElseSession) {
  const TempFolder folder;
  const Environment unset({});
  EXPECT_EQ(data_root(with_root("/some/where"), folder.path()), "/some/where");
  EXPECT_EQ(data_root(unset, folder.path()), fs::absolute(folder.path()));
  EXPECT_EQ(data_root(unset, folder / "missing"), fs::absolute("session"));
  EXPECT_EQ(data_root(with_root(""), folder / "missing"), fs::absolute("session"));
}

TEST(Spec_6_5, ToolOutputHasTheNamesOfTheFoundingDocument) {
  const Layout layout = Layout::make("/data", "s1").value();
  EXPECT_EQ(layout.run(), "/data/kernel-agent/runs/s1");
  EXPECT_EQ(layout.candidates(), layout.run() / "kernel_candidates.json");
  EXPECT_EQ(layout.attempts(), layout.run() / "optimization_attempts.jsonl");
  EXPECT_EQ(layout.prompt("forge-1"), layout.run() / "prompts/forge-1.md");
  EXPECT_EQ(layout.attempt_output("forge-1"), layout.run() / "optimized/forge-1_stdout.log");
  EXPECT_EQ(layout.verification("k1"), layout.run() / "verification/k1.json");
  EXPECT_EQ(layout.result("k1"), layout.run() / "results/k1.json");
  EXPECT_EQ(layout.log("tool", "r"), layout.run() / "logs/tool/r.log");
  EXPECT_EQ(layout.status("tool", "r"), layout.run() / "status/tool/r.json");
  EXPECT_EQ(layout.kernel_workspace("k1"), "/data/kernel-agent-workspace/k1");
  EXPECT_EQ(layout.database(), "/data/sessions/s1/storage/coordinator.db");
  EXPECT_EQ(layout.manifest(), "/data/sessions/s1/manifest.json");
  EXPECT_EQ(layout.state(), "/data/sessions/s1/state.json");
}

// Whether one of the two folders holds the other.
bool nested(const fs::path& a, const fs::path& b) {
  const std::string x = a.string() + "/";
  const std::string y = b.string() + "/";
  return x.starts_with(y) || y.starts_with(x);
}

TEST(Spec_6_5, SessionsNamedLikeFoldersHaveTreesOfTheirOwn) {
  std::vector<fs::path> trees;
  for (const char* id : {"integrate", "fusion", "collective", "integrations", "lanes"}) {
    const Layout layout = Layout::make("/data", id).value();
    trees.push_back(layout.session);
    trees.push_back(layout.run());
  }
  for (size_t i = 0; i < trees.size(); ++i) {
    for (size_t j = i + 1; j < trees.size(); ++j) EXPECT_FALSE(nested(trees[i], trees[j]));
  }
}

TEST(Layouts, IdsThatAreNoNamesAreRefused) {
  for (const std::string id : {"", ".", "..", "a/b", "a b", "a\n", "\xff"}) {
    const auto layout = Layout::make("/data", id);
    ASSERT_FALSE(layout) << id;
    EXPECT_EQ(layout.error().error_class, "invalid_session_id");
  }
  EXPECT_FALSE(Layout::make("/data", std::string(101, 'a')));
  EXPECT_TRUE(Layout::make("/data", "Az9._-"));
}

TEST(Layouts, EveryIdIsOnePathComponentOfItsOwn) {
  const std::string ids[] = {"k1",
                             "k/1",
                             "k_1",
                             "..",
                             ".",
                             "",
                             "../../escape",
                             std::string(5000, 'a'),
                             "k\\1",
                             "kernel-integration:0",
                             std::string(5000, 'a') + "b"};
  std::set<std::string> names;
  for (const std::string& id : ids) {
    const std::string name = safe_name(id);
    EXPECT_EQ(name.find('/'), std::string::npos);
    EXPECT_LT(name.size(), 200U);
    EXPECT_NE(name, "..");
    EXPECT_NE(name, ".");
    names.insert(name);
  }
  EXPECT_EQ(names.size(), std::size(ids));
  EXPECT_EQ(safe_name("k1"), "k1");
}

}  // namespace
}  // namespace hyperloom::session
