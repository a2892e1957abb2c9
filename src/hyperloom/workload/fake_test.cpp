#include "hyperloom/workload/fake.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>

namespace hyperloom::workload {
namespace {

class Fake : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "fake_test.XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { fs::remove_all(folder_); }

  FakeWorkload make(const std::string& text) {
    std::ofstream(folder_ / "model.loom") << text;
    return {folder_, {"model.loom"}};
  }
  static double throughput(const FakeWorkload& workload, const Json& envs = Json::object()) {
    auto bench = workload.start(60, {});
    if (!(*bench)->load("a", {workload.tree(), envs})) return -1;
    return (*bench)->throughput("a", 0.1).value_or(-2);
  }
  fs::path folder_;
};

TEST_F(Fake, ThroughputIsWhatTheSourcesSay) {
  EXPECT_DOUBLE_EQ(throughput(make("// fake: kernel k 600\n// fake: fixed 400\n")), 1e6);
}

TEST_F(Fake, ConfigurationOfTheSourcesOrTheVariantScalesAKernel) {
  const auto workload =
      make("config.def @tile = 4 : index\n// fake: kernel k 1000\n// fake: when tile 8 k 0.5\n");
  EXPECT_DOUBLE_EQ(throughput(workload), 1e6);
  EXPECT_DOUBLE_EQ(throughput(workload, {{"tile", 8}}), 2e6);
}

TEST_F(Fake, FaultsEndTheBenchAndWrongOutputsShow) {
  const auto workload = make("// fake: kernel k 1\n// fake: crash c 1\n// fake: wrong w 1\n");
  EXPECT_EQ(throughput(workload, {{"c", 1}}), -2);
  auto bench = workload.start(60, {});
  ASSERT_TRUE((*bench)->load("a", {workload.tree(), {{"w", 1}}}));
  EXPECT_FALSE((*bench)->compare("a", "", 1, false, false)->correct);
  ASSERT_TRUE((*bench)->load("b", {workload.tree(), {{"c", 1}}}));
  EXPECT_EQ((*bench)->kernel_ns("b", "k", 1).error().error_class, "workload_crashed");
  EXPECT_EQ((*bench)->throughput("a", 0.1).error().error_class, "workload_crashed");
}

TEST_F(Fake, OtherContentHasAnotherHash) {
  const auto workload = make("// fake: kernel k 1\n");
  auto bench = workload.start(60, {});
  const auto first = (*bench)->load("a", {workload.tree()});
  const auto again = (*bench)->load("b", {workload.tree()});
  const auto other = (*bench)->load("c", {workload.tree(), {{"tile", 8}}});
  EXPECT_EQ(first->content_hash, again->content_hash);
  EXPECT_NE(first->content_hash, other->content_hash);
}

}  // namespace
}  // namespace hyperloom::workload
