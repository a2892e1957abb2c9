#include "hyperloom/coordinator/phase.h"

#include <gtest/gtest.h>

namespace hyperloom::coordinator {
namespace {

const Environment kNone{std::map<std::string, std::string>{}};

TEST(Spec_4_7, SharesOfTheBudget) {
  EXPECT_DOUBLE_EQ(budget_share(Phase::Prelude, false, 0), 0.03);
  EXPECT_DOUBLE_EQ(budget_share(Phase::KernelAgent, false, 0), 0.35);
  double sum = 0;
  for (const PhaseRow& row : phases()) sum += budget_share(row.phase, true, 0);
  EXPECT_NEAR(sum, 1.0, 1e-12);
}

TEST(Spec_4_8, ANativeWorkloadGivesKernelNinetyPercent) {
  EXPECT_NEAR(budget_share(Phase::KernelAgent, true, 0), 0.90, 1e-12);
  EXPECT_EQ(budget_share(Phase::Explore, true, 0), 0);
  EXPECT_EQ(next_phase(Phase::Prelude, true), Phase::KernelAgent);
  EXPECT_EQ(next_phase(Phase::Prelude, false), Phase::FrameworkAgent);
  EXPECT_EQ(next_phase(Phase::Close, true), std::nullopt);
}

TEST(Spec_4_7, AnExtensionAddsFivePercentUpToTheCap) {
  EXPECT_NEAR(budget_share(Phase::KernelAgent, false, 2), 0.45, 1e-12);
  EXPECT_NEAR(budget_share(Phase::KernelAgent, false, 50), 0.80, 1e-12);
  EXPECT_NEAR(budget_share(Phase::KernelAgent, true, 3), 0.90, 1e-12);
}

KernelView view_of(const Json& state) {
  return {.state = state,
          .selected = 0,
          .auto_enabled = true,
          .seconds_used = 1,
          .seconds_allowed = 100};
}

TEST(Spec_4_7, TheHintLeavesOnceNoWorkIsPending) {
  Json state = {{"phase_hint", "skip_to_sweep"}};
  EXPECT_EQ(leave_kernel(view_of(state), kNone)->reason, "kernel_no_more_leverage");
  state["pending_kernel_integrations"] = {{"i", {{"status", "pending"}}}};
  EXPECT_FALSE(leave_kernel(view_of(state), kNone).has_value());
  state["pending_kernel_integrations"] = {{"i", {{"status", "integrated"}}}};
  EXPECT_TRUE(leave_kernel(view_of(state), kNone).has_value());
  state["geak_pending"] = {{"status", "awaiting_rebench"}};
  EXPECT_FALSE(leave_kernel(view_of(state), kNone).has_value());
}

TEST(Spec_4_7, ARecordThatWaitsForReviewHoldsNoPhaseOpen) {
  const Json state = {{"phase_hint", "skip_to_sweep"},
                      {"pending_kernel_integrations", {{"i", {{"status", "waiting"}}}}}};
  EXPECT_TRUE(leave_kernel(view_of(state), kNone).has_value());
}

TEST(Spec_4_7, ARecordThatNothingRunsAgainHoldsNoPhaseOpen) {
  Json state = {{"phase_hint", "skip_to_sweep"},
                {"pending_kernel_integrations",
                 {{"i", {{"integration_id", "i"}, {"status", "pending"}, {"source_file", "a"}}}}}};
  EXPECT_FALSE(leave_kernel(view_of(state), kNone).has_value());
  state["optimization_stack"] = {{{"action", "integrate"}, {"source_file", "a"}}};
  EXPECT_TRUE(leave_kernel(view_of(state), kNone).has_value());
}

TEST(Spec_4_7, AFailedDispatchIsWorkUntilItIsRejected) {
  Json state = {{"phase_hint", "skip_to_sweep"},
                {"pending_kernel_integrations",
                 {{"i", {{"integration_id", "i"}, {"status", "dispatch_failed"}}}}}};
  EXPECT_FALSE(leave_kernel(view_of(state), kNone).has_value());
  state["rejected_kernel_patches"] = {{"key", {{"integration_id", "i"}}}};
  EXPECT_TRUE(leave_kernel(view_of(state), kNone).has_value());
}

TEST(Spec_4_7, ASelectionHoldsThePhaseOnlyWhileTheAutomaticBatchIsOn) {
  const Json state = {{"phase_hint", "skip_to_sweep"}};
  KernelView view = view_of(state);
  view.selected = 2;
  EXPECT_FALSE(leave_kernel(view, kNone).has_value());
  view.auto_enabled = false;
  EXPECT_TRUE(leave_kernel(view, kNone).has_value());
}

TEST(Spec_4_7, CollectiveOnlyModeWaitsForTheCollectiveAlone) {
  const std::map<std::string, std::string> variables = {{"HYPERLOOM_COLLECTIVE_ONLY", "1"}};
  const Environment only(variables);
  Json state = {{"phase_hint", "skip_to_sweep"},
                {"pending_kernel_integrations", {{"i", {{"status", "pending"}}}}}};
  EXPECT_TRUE(leave_kernel(view_of(state), only).has_value());
  state["last_collective"] = {{"requires_e2e_validation", true}};
  EXPECT_FALSE(leave_kernel(view_of(state), only).has_value());
}

TEST(Spec_4_7, IdlenessNeedsTicksAndSeconds) {
  const Json state = Json::object();
  KernelView view = view_of(state);
  view.idle_ticks = 3;
  view.idle_seconds = 599;
  EXPECT_FALSE(leave_kernel(view, kNone).has_value());
  view.idle_seconds = 600;
  EXPECT_EQ(leave_kernel(view, kNone)->evidence, "kernel_idle_no_progress");
  view.idle_ticks = 2;
  EXPECT_FALSE(leave_kernel(view, kNone).has_value());
  const std::map<std::string, std::string> sooner = {
      {"INFERENCE_OPTIMIZER_KERNEL_IDLE_MAX_TICKS", "2"}};
  EXPECT_TRUE(leave_kernel(view, Environment(sooner)).has_value());
  const std::map<std::string, std::string> later = {
      {"INFERENCE_OPTIMIZER_KERNEL_IDLE_MAX_TICKS", "2"},
      {"INFERENCE_OPTIMIZER_KERNEL_IDLE_MIN_SECONDS", "601"}};
  EXPECT_FALSE(leave_kernel(view, Environment(later)).has_value());
}

TEST(Spec_4_7, TheBudgetAndTheCapEndThePhase) {
  const Json state = {{"pending_kernel_integrations", {{"i", {{"status", "pending"}}}}}};
  KernelView view = view_of(state);
  view.seconds_used = 100;
  EXPECT_EQ(leave_kernel(view, kNone)->reason, "kernel_phase_budget_exhausted");
  view.seconds_cap = 50;
  EXPECT_EQ(leave_kernel(view, kNone)->reason, "kernel_budget_cap");
}

TEST(Spec_4_7, TheFingerprintChangesWithEachKindOfProgress) {
  Json state = Json::object();
  std::string last = progress_fingerprint(state);
  for (const char* field : {"kernel_opt_task_attempts", "last_kernel_opt", "rejected_kernel_ids",
                            "pending_kernel_integrations", "collective_attempts"}) {
    state[field] = {{"x", 1}};
    const std::string next = progress_fingerprint(state);
    EXPECT_NE(next, last) << field;
    last = next;
  }
  state["optimization_stack"] = {1};
  EXPECT_NE(progress_fingerprint(state), last);
  last = progress_fingerprint(state);
  state["unrelated"] = 1;
  EXPECT_EQ(progress_fingerprint(state), last);
}

}  // namespace
}  // namespace hyperloom::coordinator
