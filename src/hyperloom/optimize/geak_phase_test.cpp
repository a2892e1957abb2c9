#include "hyperloom/optimize/geak_phase.h"

#include <gtest/gtest.h>

#include "hyperloom/optimize/session_testing.h"

namespace hyperloom::optimize {
namespace {

class Spec_4_6 : public SessionTest {
 protected:
  void SetUp() override {
    SessionTest::SetUp();
    add_fast_kernel(1);
    add_fast_kernel(2);
  }
  Json run() { return run_geak_phase(Json::object(), context(), engines()); }
  fs::path geak() const { return layout_.session / "geak"; }
};

TEST_F(Spec_4_6, HandoffSaysWhatIsHandedOver) {
  open();
  ASSERT_TRUE(session_->state().update("test", [](Json& state) {
    state["baseline_tput"] = 480000.0;
    state["current_best"] = {{"tput", 500000.0}, {"extra_envs", {{"e", 1}}}};
  }));
  run();
  const Json handoff = read_json(geak() / "handoff.json").value();
  EXPECT_EQ(handoff["schema_version"], 2);
  EXPECT_EQ(handoff["framework"], "loom");
  EXPECT_EQ(handoff["raw_baseline_throughput"], 480000.0);
  EXPECT_EQ(handoff["orchestrator_best"], 500000.0);
  EXPECT_EQ(handoff["accepted_env"], (Json{{"e", 1}}));
  EXPECT_EQ(handoff["e2e_metric"], "output");
  EXPECT_EQ(handoff["eval_dir"], (geak() / "e2e_cycle1").string());
  for (const char* field : {"model", "gpu", "tp", "workload", "accepted_flags", "exp_root",
                            "gpu_ids", "bench_protocol"}) {
    EXPECT_TRUE(handoff.contains(field)) << field;
  }
}

TEST_F(Spec_4_6, WinOfTheWholeProgramIsACandidateOnly) {
  open();
  const Json outcome = run();
  EXPECT_EQ(outcome["status"], "ok") << outcome.dump(2);
  EXPECT_EQ(outcome["speedup"], 2.0);
  EXPECT_EQ(outcome["result_path"], (geak() / "e2e_cycle1" / "result.json").string());
  EXPECT_EQ(read_json(outcome["result_path"].get<std::string>()).value()["speedup"], 2.0);
  const Json& candidate = outcome["candidate"];
  EXPECT_EQ(candidate["artifact_bundle"]["write_paths"], (Json{"1.loom", "2.loom"}));
  EXPECT_EQ(candidate["kernel_speedups"], (Json{{"k1", 2.0}, {"k2", 2.0}}));
  EXPECT_EQ(candidate["status"], "pending");
  EXPECT_NE(read(tree() / "1.loom").find("= 4 : index"), std::string::npos)
      << "the runner works on copies";
  Json state = Json::object();
  record_geak(state, outcome);
  EXPECT_EQ(state["geak_pending"]["status"], "awaiting_rebench");
  const std::string id = state["geak_pending"]["integration_id"];
  EXPECT_EQ(state["pending_kernel_integrations"][id]["optimization_decision"], "KEEP");
  EXPECT_FALSE(state.contains("optimization_stack"));
}

TEST_F(Spec_4_6, NoWinLeavesNothingPending) {
  write("1.loom", "// fake: kernel k1 10\nconfig.def @t = 4 : index\n// fake: option t 4 8\n");
  write("2.loom", "// fake: kernel k2 10\n");
  open();
  const Json outcome = run();
  EXPECT_EQ(outcome["status"], "ok");
  EXPECT_EQ(outcome["speedup"], 1.0);
  Json state = Json::object();
  record_geak(state, outcome);
  EXPECT_FALSE(state.contains("geak_pending"));
  EXPECT_EQ(state["last_geak"]["status"], "ok");
}

TEST_F(Spec_4_6, TooLittleTimeIsSkipped) {
  deadline_ = Deadline::in_seconds(800);
  open();
  const Json outcome = run();
  EXPECT_EQ(outcome["status"], "skipped");
  EXPECT_EQ(outcome["reason"], "insufficient_budget");
  EXPECT_EQ(workload_->script().starts, 0);
}

TEST_F(Spec_4_6, ShortSessionHasAShortSearch) {
  open();
  layout_ = session::Layout::make(folder_ / "data", "short").value();
  Json options = Json::object();
  options["budget_seconds"] = 120.0;
  session_ = std::make_unique<session::Session>(
      session::Session::create(layout_, workload_->describe(), options).value());
  deadline_ = Deadline::in_seconds(100);
  EXPECT_EQ(run()["status"], "ok");
  deadline_ = Deadline::in_seconds(17);
  EXPECT_EQ(run()["status"], "skipped") << "6 of 17 seconds are left over, 12 are needed";
  values_["GEAK_MIN_RUN_S"] = "5";
  environment_ = std::make_unique<Environment>(values_);
  deadline_ = Deadline::in_seconds(17);
  EXPECT_EQ(run()["status"], "ok");
}

TEST_F(Spec_4_6, EnvironmentBoundsTheSearch) {
  deadline_ = Deadline::in_seconds(800);
  values_["GEAK_MIN_RUN_S"] = "400";
  open();
  EXPECT_EQ(run()["status"], "ok");
  values_["GEAK_BUDGET_MARGIN_S"] = "500";
  environment_ = std::make_unique<Environment>(values_);
  EXPECT_EQ(run()["status"], "skipped");
  values_["GEAK_BUDGET_MARGIN_S"] = "0";
  values_["GEAK_E2E_TIMEOUT_S"] = "399";
  environment_ = std::make_unique<Environment>(values_);
  EXPECT_EQ(run()["status"], "skipped");
}

TEST_F(Spec_4_6, BaselineThatIsAnotherOneIsSaid) {
  open();
  ASSERT_TRUE(session_->state().update("test", [](Json& state) { state["baseline_tput"] = 1e9; }));
  const Json outcome = run();
  EXPECT_EQ(outcome["status"], "baseline_reproduction_failed");
  EXPECT_FALSE(outcome.contains("candidate"));
}

class Crasher final : public Backend {
 public:
  std::string name() const override { return "geak"; }
  Json configuration(const task::Context&) const override { return Json::object(); }
  Outcome optimize(Attempt& attempt) override {
    if (drift) std::ofstream(attempt.context.workload.tree() / "1.loom", std::ios::app) << "\n";
    if (throws) throw std::runtime_error("broken");
    Outcome outcome;
    outcome.returncode = 124;
    outcome.error_type = "ladder_timeout";
    return outcome;
  }
  bool drift = false;
  bool throws = false;
};

TEST_F(Spec_4_6, EveryEndOfTheRunnerHasItsStatus) {
  const auto crasher = std::make_shared<Crasher>();
  backends_ = {crasher};
  open();
  EXPECT_EQ(run()["status"], "timeout");
  crasher->throws = true;
  EXPECT_EQ(run()["status"], "runner_crashed");
  crasher->throws = false;
  crasher->drift = true;
  EXPECT_EQ(run()["error_class"], "tree_drift");
  backends_.clear();
  EXPECT_EQ(run()["status"], "runner_not_found");
}

}  // namespace
}  // namespace hyperloom::optimize
