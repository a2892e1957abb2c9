// Killed at every step and resumed: the same decisions, the same tree, nothing left behind.
#include <gtest/gtest.h>

#include <cstdlib>
#include <sstream>

#include "hyperloom/integrate/integrate_testing.h"

namespace hyperloom::integrate {
namespace {

std::string decisions_of(const World& world) {
  std::string text;
  for (const Json& row : world.decisions()) {
    text +=
        text_of(row, "id") + " " + text_of(row, "decision") + " " + text_of(row, "reason") + "\n";
  }
  return text;
}

// One candidate that is kept and brings a file in a new folder, one that is reverted.
void queue_candidates(World& world) {
  if (world.state().contains("pending_kernel_integrations") &&
      !world.state()["pending_kernel_integrations"].empty()) {
    return;
  }
  Json record = world.queue("i1", kernel_text("ka", 4000));
  world.write("snapshot/a.loom", kernel_text("ka", 4000));
  world.write("snapshot/new/lib.loom", "// helper\n");
  world.write("p.diff",
              "--- a/a.loom\n+++ b/a.loom\n@@ -1 +1 @@\n-x\n+y\n"
              "--- /dev/null\n+++ b/new/lib.loom\n@@ -0,0 +1 @@\n+x\n");
  record["artifact_bundle"] = {{"type", "patch_snapshot"},
                               {"patch_path", (world.base() / "p.diff").string()},
                               {"snapshot_dir", (world.base() / "snapshot").string()},
                               {"repo_root", world.tree().string()}};
  world.change([&](Json& state) { state["pending_kernel_integrations"]["i1"] = record; });
  world.queue("i2", kernel_text("kb", 5000), "b.loom");
}

class DISABLED_Session : public testing::Test {
 protected:
  // As the coordinator does: recover, then integrate what is ready.
  static void drain() {
    const fs::path base = test_argument();
    fs::create_directories(base);
    World world(base);
    world.recording = base / "measurements.jsonl";
    world.open();
    queue_candidates(world);
    for (const Json& action : recover(world.context())) {
      ASSERT_EQ(text_of(action["result"], "status"), "ok") << action;
    }
    World::drain(world.context(), 10);
  }
};
TEST_F(DISABLED_Session, Drains) { drain(); }

// Numbers of the steps at which to kill: all that change something, and some of the measurements,
// which are all alike.
std::vector<int> steps_of(const fs::path& log) {
  std::vector<int> steps;
  std::ifstream stream(log);
  bool begun = false;
  for (std::string line; std::getline(stream, line);) {
    std::istringstream words(line);
    int number = 0;
    std::string name;
    words >> number >> name;
    // What is in front belongs to the session.
    begun = begun || name == "integrate.begin" || name == "patch_claim";
    if (!begun) continue;
    if (name != "measurement" || number % 24 == 0) steps.push_back(number);
  }
  return steps;
}

TEST(Spec_12, KilledAtAnyStepOfAnIntegrationTheDecisionsAreTheSame) {
  TempFolder folder;
  const fs::path reference = folder / "reference";
  const fs::path log = folder / "steps";
  ::setenv("HYPERLOOM_FAULT_LOG", log.c_str(), 1);
  ASSERT_FALSE(killed_at("DISABLED_Session.Drains", 0, reference));
  ::unsetenv("HYPERLOOM_FAULT_LOG");
  World expected(reference);
  expected.open();
  const std::string decisions = decisions_of(expected);
  EXPECT_EQ(decisions, "i1 KEEP gain_confirmed\ni2 REVERT below_threshold\n");
  const std::string tree = picture(expected.tree());
  EXPECT_TRUE(fs::exists(expected.tree() / "new/lib.loom"));
  const std::vector<int> steps = steps_of(log);
  ASSERT_GE(steps.size(), 35u);
  for (const int step : steps) {
    const fs::path base = folder / ("k" + std::to_string(step));
    ASSERT_TRUE(killed_at("DISABLED_Session.Drains", step, base)) << step;
    ASSERT_FALSE(killed_at("DISABLED_Session.Drains", 0, base)) << step;
    World world(base);
    world.open();
    ASSERT_EQ(decisions_of(world), decisions) << step;
    ASSERT_EQ(picture(world.tree()), tree) << step;
    const Json state = world.state();
    ASSERT_FALSE(state.contains("active_integration")) << step;
    ASSERT_EQ(state["optimization_stack"].size(), 1u) << step;
    ASSERT_EQ(state["gain_ledger"], [&] {
      Json ledger = expected.state()["gain_ledger"];
      for (size_t i = 0; i < ledger.size(); ++i) ledger[i]["ts"] = state["gain_ledger"][i]["ts"];
      return ledger;
    }()) << step;
    std::error_code error;
    fs::remove_all(base, error);
  }
}

TEST_F(DISABLED_Session, EndsBeforeItMeasures) {
  const fs::path base = test_argument();
  World world(base);
  world.open();
  world.queue("i1", kernel_text("ka", 4000));
  world.script().before = [&](const std::string& call) {
    if (call == "load b" && world.state().contains("active_integration")) ::_exit(0);
  };
  world.run("i1");
  FAIL() << "it went on";
}

TEST(Spec_14_Kill, AfterApplyAndBeforeMeasurementTheTreeIsTakenBackAndReported) {
  TempFolder folder;
  const std::string before = picture(World(folder.path()).tree());
  ASSERT_FALSE(killed_at("DISABLED_Session.EndsBeforeItMeasures", 0, folder.path()));
  World world(folder.path());
  world.open();
  EXPECT_NE(picture(world.tree()), before);
  const auto actions = recover(world.context());
  ASSERT_EQ(actions.size(), 1u);
  EXPECT_EQ(actions[0]["action"], "revert");
  EXPECT_EQ(actions[0]["integration_id"], "i1");
  EXPECT_EQ(actions[0]["result"]["status"], "ok");
  EXPECT_EQ(picture(world.tree()), before);
  // An interruption is neither an attempt nor a fault.
  EXPECT_TRUE(world.state()["kernel_integrate_attempts"].empty());
  EXPECT_EQ(World::verdict(world.run("i1")), "KEEP gain_confirmed");
  EXPECT_EQ(world.decisions().size(), 1u);
  EXPECT_TRUE(recover(world.context()).empty());
}

TEST(Spec_7_8, AnEditMadeWhileNobodyRanIsKeptAndForbidsMeasuring) {
  TempFolder folder;
  (void)World(folder.path());
  ASSERT_FALSE(killed_at("DISABLED_Session.EndsBeforeItMeasures", 0, folder.path()));
  World world(folder.path());
  world.open();
  world.write("tree/a.loom", "mine\n");
  const auto actions = recover(world.context());
  ASSERT_EQ(actions.size(), 1u);
  EXPECT_EQ(actions[0]["result"]["error_class"], "tree_drift");
  EXPECT_EQ(world.read("tree/a.loom"), "mine\n");
  EXPECT_TRUE(world.state().contains("recovery_required"));
}

}  // namespace
}  // namespace hyperloom::integrate
