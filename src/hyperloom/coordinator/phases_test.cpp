// When whole sessions leave their phases, and what a turn is told.
#include <gtest/gtest.h>

#include <algorithm>

#include "hyperloom/coordinator/session_testing.h"
#include "hyperloom/core/child.h"

namespace hyperloom::coordinator {
namespace {

using IR_4 = SessionTest;
using Spec_1_1 = SessionTest;
using Spec_2_4_Session = SessionTest;
using Spec_4_7_Session = SessionTest;
using Names = std::vector<std::string>;

std::string reason_of_leaving(const SessionRun& run, const std::string& phase) {
  const Json state = run.session.state();
  for (const Json& row : state["phase_history"]) {
    if (row["phase"] == phase) return row["reason"];
  }
  return "";
}

TEST_F(IR_4, WhatAKilledRunLeftBehindIsEndedBeforeAnythingIsMeasured) {
  const auto start = [](const std::string& token) {
    ChildOptions options;
    options.command = {"/bin/sh", "-c", "echo ready; exec sleep 1000"};
    options.session_token = token;
    auto child = Child::start(options);
    EXPECT_TRUE(child) << child.error().message;
    EXPECT_TRUE(child->read_line(Deadline::in_seconds(20), {}));
    return std::move(*child);
  };
  const std::string token = (std::filesystem::canonical(folder_.path()) / "data/sessions/s1");
  Child stray = start(token);
  Child other = start(token + "-2");
  bool measured_beside_it = false;
  Plan setup{.variables = kForge, .options = quick()};
  setup.options.kernel_enabled = false;
  setup.before = [&](const std::string&) {
    measured_beside_it = measured_beside_it || is_running(stray.process());
  };
  const auto made = run(setup);
  EXPECT_FALSE(measured_beside_it);
  EXPECT_FALSE(is_running(stray.process()));
  EXPECT_TRUE(is_running(other.process())) << "it is of another session";
  const Json actions = made->session.state()["recovery_actions"];
  ASSERT_EQ(actions.size(), 1u);
  EXPECT_EQ(actions[0], Json({{"action", "strays_ended"}, {"count", 1}}));
}

TEST_F(Spec_4_7_Session, WithoutATraceKernelIsNeverEntered) {
  Plan setup{.variables = kForge, .options = quick()};
  setup.change = [this](Json&) {
    // A file lies where the profile goes.
    std::ofstream(folder_.path() / "data/sessions/s1/profiles") << "in the way";
  };
  const auto made = run(setup);
  EXPECT_EQ(made->phases(), (Names{"PRELUDE", "SWEEP"}));
  EXPECT_EQ(reason_of_leaving(*made, "PRELUDE"), "kernel_phase_aborted_no_trace");
  EXPECT_NE(made->not_run("profile"), "");
  EXPECT_EQ(made->report()["outcome"], "no_gain");
}

TEST_F(Spec_4_7_Session, TheSessionsBudgetEndsAnyPhase) {
  Plan setup{.variables = kForge, .options = quick()};
  setup.options.budget_seconds = 1e-9;
  const auto made = run(setup);
  EXPECT_TRUE(made->ended->over);
  EXPECT_EQ(reason_of_leaving(*made, "PRELUDE"), "time_budget");
  EXPECT_EQ(made->ended->stop_reason, "the time budget is used up");
}

TEST_F(Spec_4_7_Session, TheCapOfKernelEndsIt) {
  Plan setup{.variables = kForge, .options = quick()};
  setup.options.kernel = "work";
  setup.options.kernel_cap_seconds = 1e-9;
  setup.envelopes = {kSilent};
  const auto made = run(setup);
  EXPECT_EQ(reason_of_leaving(*made, "KERNEL_AGENT"), "kernel_budget_cap");
}

TEST_F(Spec_4_7_Session, HintsSkipToKernelAndToTheEnd) {
  Plan setup{.variables = kForge, .options = quick()};
  setup.options.kernel = "work";
  setup.envelopes = {hints("skip_to_kernel"), hints("skip_to_close")};
  const auto made = run(setup);
  EXPECT_EQ(made->phases(), (Names{"PRELUDE", "KERNEL_AGENT"}));
  EXPECT_EQ(reason_of_leaving(*made, "PRELUDE"), "skip_to_kernel");
  EXPECT_EQ(reason_of_leaving(*made, "KERNEL_AGENT"), "skip_to_close");
  EXPECT_TRUE(made->ended->over);
}

TEST_F(Spec_4_7_Session, HintsForMoreBudgetCountOncePerUse) {
  Plan setup{.variables = kForge, .options = quick()};
  setup.options.kernel = "work";
  setup.envelopes = {hints("skip_to_kernel"),        hints("extend_kernel_budget"),
                     hints("extend_kernel_budget"),  kSilent,
                     hints("extend_explore_budget"), hints("skip_to_sweep")};
  const auto made = run(setup);
  EXPECT_EQ(made->session.state()["kernel_budget_extensions"], 2);
  EXPECT_EQ(made->session.state()["explore_budget_extensions"], 1);
  EXPECT_EQ(reason_of_leaving(*made, "KERNEL_AGENT"), "kernel_no_more_leverage");
}

TEST_F(Spec_1_1, ARoleHasOneTurnATickAndItsInboxGrowsWithIt) {
  std::vector<agent::Turn> told;
  Plan setup{.variables = kForge, .options = quick(), .told = &told};
  setup.options.kernel = "work";
  setup.envelopes = {asks("integrate"), asks("run_fusion"),    kSilent, kSilent,
                     kSilent,           hints("skip_to_sweep")};
  const auto made = run(setup);
  ASSERT_GE(told.size(), 4u);
  for (size_t i = 0; i < told.size(); ++i) EXPECT_EQ(told[i].number, i);
  // Its denials are shown in the very next turn, and once.
  EXPECT_TRUE(told[0].denials.empty());
  ASSERT_EQ(told[1].denials.size(), 1u);
  EXPECT_EQ(told[1].denials[0]["action"], "integrate");
  ASSERT_EQ(told[2].denials.size(), 1u);
  EXPECT_EQ(told[2].denials[0]["action"], "run_fusion");
  EXPECT_TRUE(told[3].denials.empty());
  ASSERT_EQ(told[1].inbox.size(), 1u);
  EXPECT_EQ(told[1].inbox[0].payload["kind"], "policy_denied");
  EXPECT_TRUE(told[3].inbox.empty());
}

// Fails its second turn once.
class Faltering final : public agent::Orchestrator {
 public:
  explicit Faltering(std::vector<agent::Turn>* told) : told_(told) {}
  std::string_view role() const override { return "orchestration"; }
  Result<Json> turn(const agent::Turn& turn) override {
    told_->push_back(turn);
    if (told_->size() == 1) return asks("integrate");
    if (told_->size() == 2) return fail("backend_failed", "the back end does not answer");
    return kSilent;
  }

 private:
  std::vector<agent::Turn>* told_;
};

TEST_F(Spec_2_4_Session, ATurnThatFailsIsToldAgainWhatItWasTold) {
  std::vector<agent::Turn> told;
  Plan setup{.variables = kForge, .options = quick()};
  setup.options.kernel_cap_seconds = 1e-9;
  setup.role = [&] { return std::make_unique<Faltering>(&told); };
  const auto made = run(setup);
  ASSERT_GE(told.size(), 3u);
  EXPECT_EQ(told[1].number, 1u);
  EXPECT_EQ(told[2].number, 1u) << "the turn was not completed";
  ASSERT_EQ(told[1].inbox.size(), 1u);
  ASSERT_EQ(told[2].inbox.size(), 1u);
  EXPECT_EQ(told[2].inbox[0].seq, told[1].inbox[0].seq);
  EXPECT_EQ(told[2].denials, told[1].denials);
  const Json failures = made->session.state()["last_action_failures"];
  EXPECT_TRUE(std::ranges::any_of(
      failures, [](const Json& row) { return row["error_class"] == "backend_failed"; }));
}

}  // namespace
}  // namespace hyperloom::coordinator
