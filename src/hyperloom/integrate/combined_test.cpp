#include <gtest/gtest.h>

#include "hyperloom/integrate/gain_ledger.h"
#include "hyperloom/integrate/integrate_testing.h"
#include "hyperloom/integrate/kept.h"

namespace hyperloom::integrate {
namespace {

class Combined : public testing::Test {
 protected:
  void SetUp() override {
    world_.open();
    before_ = picture(world_.tree());
  }
  // Two candidates that gain `a` and `b` nanoseconds of 10000, both reverted as below_threshold.
  void revert_two(double a, double b) {
    world_.queue("i1", kernel_text("ka", 5000 - a));
    world_.queue("i2", kernel_text("kb", 4000 - b), "b.loom");
    for (const char* id : {"i1", "i2"}) {
      EXPECT_EQ(World::verdict(world_.run(id)), "REVERT below_threshold");
    }
  }
  TempFolder folder_;
  World world_{folder_.path()};
  std::string before_;
};
using Spec_14_Combined = Combined;
using Spec_7_7 = Combined;

TEST_F(Spec_14_Combined, TwoSmallPositivesThatClearTheThresholdTogetherAreOneKeep) {
  revert_two(65, 65);
  const Json result = integrate_small_positives(world_.context());
  ASSERT_EQ(World::verdict(result), "KEEP gain_confirmed") << result;
  EXPECT_NEAR(number_of(result, "gain_pct"), 1.317, 0.01);
  const Json state = world_.state();
  ASSERT_EQ(state["optimization_stack"].size(), 1u);
  EXPECT_EQ(state["optimization_stack"][0]["action"], "combined");
  ASSERT_EQ(state["gain_ledger"].size(), 1u);
  EXPECT_EQ(world_.read("tree/a.loom"), kernel_text("ka", 4935));
  EXPECT_EQ(world_.read("tree/b.loom"), kernel_text("kb", 3935));
  EXPECT_EQ(state["small_positives"]["i1"]["status"], "integrated");
  EXPECT_EQ(state["small_positives"]["i1"]["stack_resolved"], true);
  EXPECT_EQ(state["small_positives"]["i1"]["stack_validation_in_progress"], false);
  EXPECT_EQ(state["pending_stack_validation_apply_results"].size(), 2u);
  EXPECT_EQ(state["pending_stack_validation_result"]["decision"], "KEEP");
  EXPECT_EQ(world_.decisions().size(), 3u);
}

TEST_F(Spec_14_Combined, TwoThatDoNotAreAllReverted) {
  revert_two(40, 40);
  const Json rejected = world_.state()["rejected_kernel_patches"];
  const Json result = integrate_small_positives(world_.context());
  EXPECT_EQ(World::verdict(result), "REVERT below_threshold") << result;
  EXPECT_EQ(picture(world_.tree()), before_);
  const Json state = world_.state();
  EXPECT_FALSE(state["small_positives"]["i1"]["status"] == "integrated");
  for (const auto& [key, row] : rejected.items()) {
    EXPECT_EQ(state["rejected_kernel_patches"][key], row);
  }
  EXPECT_EQ(text_of(integrate_small_positives(world_.context()), "status"), "skipped");
}

TEST_F(Spec_7_7, OneThatWasMeasuredAloneIsNotTriedAgain) {
  world_.queue("i1", kernel_text("ka", 4950));
  world_.run("i1");
  const Json result = integrate_small_positives(world_.context());
  EXPECT_EQ(text_of(result, "status"), "skipped");
  EXPECT_EQ(text_of(result, "reason"), "too_few_small_positives");
}

TEST_F(Spec_7_7, OneThatWasNeverMeasuredEndToEndIsEnough) {
  Json record = world_.queue("i1", kernel_text("ka", 4500), "a.loom", 1.12);
  record["status"] = "small_positive";
  record["measured_end_to_end"] = false;
  record["extra_envs"] = {{"tile", "8"}};
  world_.change([&](Json& state) {
    state["pending_kernel_integrations"] = Json::object();
    state["small_positives"]["i1"] = record;
  });
  const Json result = integrate_small_positives(world_.context());
  EXPECT_EQ(World::verdict(result), "KEEP gain_confirmed") << result;
  EXPECT_EQ(world_.state()["current_best"]["extra_envs"], Json({{"tile", "8"}}));
}

TEST_F(Spec_7_7, OneOfTwoCandidatesOfAFileIsTaken) {
  world_.queue("i1", kernel_text("ka", 4950));
  world_.run("i1");
  world_.queue("i2", kernel_text("ka", 4930));
  world_.run("i2");
  world_.queue("i3", kernel_text("kb", 3935), "b.loom");
  world_.run("i3");
  const Json result = integrate_small_positives(world_.context());
  EXPECT_EQ(World::verdict(result), "KEEP gain_confirmed");
  EXPECT_EQ(result["members"].size(), 2u);
  EXPECT_EQ(world_.read("tree/a.loom"), kernel_text("ka", 4930));
}

TEST_F(Combined, WhatIsKeptIsExportedAsOnePatchAndUndone) {
  world_.queue("i1", kernel_text("ka", 4000));
  world_.queue("i2", kernel_text("kb", 3000), "b.loom");
  World::drain(world_.context(), 10);
  const Json state = world_.state();
  const auto patch = export_patch(world_.layout(), state, world_.tree());
  ASSERT_TRUE(patch);
  EXPECT_TRUE(patch->contains("--- a/a.loom\n+++ b/a.loom\n@@ -1 +1 @@\n-// fake: kernel ka 5000"))
      << *patch;
  EXPECT_TRUE(patch->contains("+// fake: kernel kb 3000"));
  const Json undone = undo_kept(world_.session(), world_.tree());
  EXPECT_EQ(text_of(undone, "status"), "ok") << undone;
  EXPECT_EQ(picture(world_.tree()), before_);
  const Json after = world_.state();
  EXPECT_TRUE(after["optimization_stack"].empty());
  EXPECT_TRUE(after["current_best"].empty());
  EXPECT_EQ(ledger_final(after), ledger_baseline(after));
  EXPECT_EQ(after["last_trace_analyze"]["tree_hash"],
            *workload::tree_hash(world_.tree(), world_.workload().files()));
  EXPECT_EQ(text_of(undo_kept(world_.session(), world_.tree()), "status"), "skipped");
}

TEST_F(Combined, UndoRefusesWhereAKeptFileWasEdited) {
  world_.queue("i1", kernel_text("ka", 4000));
  world_.run("i1");
  world_.write("tree/a.loom", "mine\n");
  const Json undone = undo_kept(world_.session(), world_.tree());
  EXPECT_EQ(text_of(undone, "error_class"), "tree_drift");
  EXPECT_EQ(world_.read("tree/a.loom"), "mine\n");
  EXPECT_EQ(world_.state()["optimization_stack"].size(), 1u);
}

}  // namespace
}  // namespace hyperloom::integrate
