#include "hyperloom/optimize/run.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <set>
#include <string>

#include "hyperloom/optimize/select.h"
#include "hyperloom/optimize/session_testing.h"

namespace hyperloom::optimize {
namespace {

using Optimization = SessionTest;
using Spec_3_2 = SessionTest;
using Spec_11_Budgets = SessionTest;
using Spec_11_Devices = SessionTest;

TEST_F(Optimization, FindsVerifiesAndProposesTheBetterConfiguration) {
  use_forge();
  add_kernel(1, 1000, tile_lines("k1", "tile"));
  open();
  const Json result = optimize();
  EXPECT_EQ(result["status"], "ok") << result.dump(2);
  EXPECT_EQ(decision_of(result), "KEEP");
  const Json& verification = result["verification"];
  EXPECT_EQ(verification["micro_speedup"], 2.0);
  EXPECT_EQ(verification["micro_speedup_source"], "forge_mean_case_result");
  EXPECT_EQ(verification["correctness_passed"], true);
  EXPECT_EQ(verification["best_backend"], "forge");
  const Json& bundle = verification["best_artifact_bundle"];
  EXPECT_EQ(bundle["type"], "patch_snapshot");
  EXPECT_EQ(bundle["repo_root"], tree().string());
  EXPECT_NE(read(bundle["snapshot_dir"].get<std::string>() + "/1.loom").find("@tile = 8 : index"),
            std::string::npos);
  const std::string patch = read(bundle["patch_path"].get<std::string>());
  EXPECT_NE(patch.find("-config.def @tile = 4 : index\n+config.def @tile = 8 : index\n"),
            std::string::npos)
      << patch;
  EXPECT_NE(read(tree() / "1.loom").find("@tile = 4 : index"), std::string::npos)
      << "IR-2: the sources stay as they are";
  EXPECT_EQ(session_->state().get("pending_kernel_integrations").size(), 1U);
}

TEST_F(Optimization, DefaultOrderIsServedByGeak) {
  add_kernel(1, 1000, tile_lines("k1", "tile"));
  open();
  const Json result = optimize();
  EXPECT_EQ(decision_of(result), "KEEP") << result.dump(2);
  EXPECT_EQ(result["selected_backends"], Json{"geak"});
  EXPECT_EQ(result["verification"]["micro_speedup_source"], "structured_timing_result");
  EXPECT_EQ(attempt_rows().at(0)["backend"], "geak");
}

TEST_F(Optimization, NothingBetterIsReverted) {
  use_forge();
  add_kernel(1, 1000,
             "config.def @tile = 4 : index\n// fake: option tile 4 8\n"
             "// fake: when tile 8 k1 1.5\n");
  open();
  const Json result = optimize();
  EXPECT_EQ(decision_of(result), "REVERT") << result.dump(2);
  EXPECT_EQ(result["proposal"]["reasons"], Json{"no_speedup"});
}

// Section 14: "micro 1.09, correct, valid".
TEST_F(Optimization, SmallGainIsRevertedAndListed) {
  use_forge();
  add_kernel(1, 1090,
             "config.def @tile = 4 : index\n// fake: option tile 4 8\n"
             "// fake: when tile 8 k1 0.91743119266055046\n");
  open();
  const Json result = optimize();
  EXPECT_EQ(result["proposal"]["reasons"], Json{"below_threshold"}) << result.dump(2);
  EXPECT_EQ(session_->state().get("small_positives").size(), 1U);
}

TEST_F(Optimization, WhatIsFastAndWrongOnAdversarialInputsIsNotTaken) {
  use_forge();
  add_kernel(1, 1000,
             "config.def @tile = 4 : index\n// fake: option tile 4 8\n"
             "// fake: when tile 8 k1 0.1\n// fake: wrong_adversarial\n");
  open();
  const Json result = optimize();
  EXPECT_EQ(decision_of(result), "REVERT");
  EXPECT_EQ(result["proposal"]["reasons"], Json{"no_usable_attempt"});
}

TEST_F(Optimization, CandidateThatCrashesCostsOnlyItself) {
  use_forge();
  add_kernel(1, 1000,
             tile_lines("k1", "tile") +
                 "config.def @u = 1 : index\n// fake: option u 1 2 3\n// fake: crash u 2\n"
                 "// fake: hang u 3\n");
  open();
  const Json result = optimize();
  EXPECT_EQ(decision_of(result), "KEEP") << result.dump(2);
  EXPECT_EQ(result["verification"]["micro_speedup"], 2.0);
  const std::string output = read(layout_.attempt_output(result["attempts"][0]["attempt_id"]));
  EXPECT_NE(output.find("u = 2: workload_crashed"), std::string::npos) << output;
  EXPECT_NE(output.find("u = 3: workload_hung"), std::string::npos) << output;
  EXPECT_NE(output.find("tile = 32: build_failed: 1.loom:1:1"), std::string::npos) << output;
}

TEST_F(Optimization, WorkloadThatFailsAsItIsIsAnInfrastructureFailure) {
  use_forge();
  add_kernel(1, 1000, tile_lines("k1", "tile") + "// fake: crash\n");
  open();
  const Json result = optimize();
  EXPECT_EQ(result["status"], "failed");
  EXPECT_EQ(result["error_class"], "baseline_failed");
  EXPECT_EQ(decision_of(result), "");
  const Json ledger = session_->state().get("kernel_opt_task_attempts");
  EXPECT_EQ(ledger.begin()->at("failure_count"), 1);
}

TEST_F(Spec_3_2, MissingAnalysisIsSaid) {
  add_kernel(1, 1000, "");
  open();
  ASSERT_TRUE(session_->state().update(
      "test", [](Json& state) { state["last_trace_analyze"] = Json::object(); }));
  EXPECT_EQ(optimize()["error_class"], "missing_trace_analyze");
}

TEST_F(Spec_3_2, MissingArtifactIsWaitedForAndThenSaid) {
  add_kernel(1, 1000, "");
  open();
  const Json payload = {{"candidates_path", (folder_ / "none.json").string()}};
  EXPECT_EQ(optimize(payload)["error_class"], "missing_candidates_artifact");
}

TEST_F(Spec_3_2, UnreadableArtifactIsAFailureNotAnEmptySelection) {
  add_kernel(1, 1000, "");
  open();
  std::ofstream(layout_.candidates()) << "{";
  const Json result = optimize();
  EXPECT_EQ(result["status"], "failed");
  EXPECT_EQ(result["error_class"], "candidates_unreadable");
}

TEST_F(Spec_3_2, NothingEligibleIsSkippedWithEveryReason) {
  add_kernel(1, 1000, "");
  open();
  values_["HYPERLOOM_KERNEL_OPT_MIN_GPU_PCT"] = "50";
  environment_ = std::make_unique<Environment>(values_);
  const Json result = optimize();
  EXPECT_EQ(result["status"], "skipped");
  EXPECT_EQ(result["reason"], "no_eligible_kernels");
  EXPECT_EQ(result["kernels_considered"], 1);
  EXPECT_EQ(result["left_out"][0]["reason"], "below_min_gpu_pct=50");
  EXPECT_EQ(session_->state().get("last_kernel_opt_dispatch_skip")["reason"],
            "no_eligible_kernels");
}

TEST_F(Spec_3_2, NamedKernelRunsThoughNothingIsEligible) {
  use_forge();
  add_kernel(1, 1000, tile_lines("k1", "tile"));
  values_["HYPERLOOM_KERNEL_OPT_MIN_GPU_PCT"] = "50";
  open();
  for (const char* name : {"k001", "k1"}) {
    EXPECT_EQ(optimize({{"kernel_id", name}})["kernel_id"], "k001") << name;
  }
  EXPECT_EQ(optimize({{"kernel_id", "kn3"}})["reason"], "kernel_id_not_in_candidates");
  EXPECT_EQ(optimize({{"kernel_id", "kn3"}})["known_kernel_ids"], Json{"k001"});
}

// The snapshot ran the only eligible kernel in place of the one that was asked for.
TEST_F(Spec_3_2, AnotherKernelIsNeverPutInPlaceOfTheRequestedOne) {
  use_forge();
  add_kernel(1, 1000, tile_lines("k1", "tile"));
  add_kernel(2, 1000, tile_lines("k2", "tile2"));
  candidates_["hot_kernels"][1]["reusable_native_kernel"] = false;
  open();
  const Json result = optimize({{"kernel_id", "k002"}});
  EXPECT_EQ(result["status"], "skipped");
  EXPECT_EQ(result["reason"], "requested_kernel_not_eligible");
  EXPECT_EQ(result["skip_reason"], "not_reusable_native_kernel");
  EXPECT_TRUE(attempt_rows().empty());
}

TEST_F(Spec_3_2, WrongTypesAreInvalidPayloads) {
  add_kernel(1, 1000, "");
  open();
  const Json wrong[] = {
      {{"kernel_id", 3}},     {{"max_parallel", 0}},      {{"max_parallel", 1.5}},
      {{"dry_run", "false"}}, {{"budget_minutes", "90"}}, {{"budget_minutes", 0}},
      {{"backends", 1}},      {{"candidate", "k001"}},    {{"correctness_passed", 1}}};
  for (const Json& payload : wrong) {
    const Json result = optimize(payload);
    EXPECT_EQ(result["error_class"], "invalid_payload") << payload;
    EXPECT_NE(text_of(result, "error").find("`" + payload.begin().key() + "`"), std::string::npos)
        << result;
  }
  EXPECT_EQ(optimize({{"micro_speedup", 2}})["error"],
            "`micro_speedup` is allowed in a dry run only");
}

TEST_F(Spec_3_2, GuardsStandInFrontOfEveryRun) {
  use_forge();
  add_kernel(1, 1000, tile_lines("k1", "tile"));
  candidates_["hot_kernels"][0]["shape_provenance"] = "launch_grid";
  open();
  const Json result = optimize();
  EXPECT_EQ(result["status"], "failed");
  EXPECT_EQ(result["error_class"], "untrusted_shape_provenance");
  EXPECT_TRUE(attempt_rows().empty());
}

// IR-1: everything that qualifies is submitted together, up to eight at a time.
TEST_F(Spec_3_2, IR_1_EverythingThatQualifiesIsOneBatch) {
  use_forge();
  for (int i = 1; i <= 9; ++i) add_fast_kernel(i);
  open();
  std::mutex mutex;
  std::condition_variable changed;
  int building = 0;
  bool together = false;
  workload_->script().before = [&](const std::string& call) {
    if (call != "load before") return;
    std::unique_lock lock(mutex);
    together |= ++building > 1;
    changed.notify_all();
    // The first one stays until another one is there.
    changed.wait_for(lock, std::chrono::seconds(20), [&] { return together; });
    --building;
  };
  const Json result = optimize();
  EXPECT_EQ(result["batch_mode"], true);
  EXPECT_EQ(result["batch_kernel_ids"].size(), 9U);
  EXPECT_EQ(result["max_parallel"], 8);
  EXPECT_EQ(result["backend_order"], Json{"forge"});
  EXPECT_EQ(decision_of(result), "KEEP");
  EXPECT_EQ(partial_.size(), 9U);
  EXPECT_TRUE(together) << "builds run side by side";
  EXPECT_EQ(session_->state().get("pending_kernel_integrations").size(), 9U);
  std::set<std::string> ids;
  for (const Json& attempt : attempt_rows()) ids.insert(attempt["attempt_id"]);
  EXPECT_EQ(ids.size(), 9U);
}

// Section 14: "eight candidates, one device".
TEST_F(Spec_3_2, NoTwoMeasurementsOverlap) {
  use_forge();
  for (int i = 1; i <= 8; ++i) add_fast_kernel(i);
  open();
  workload_->script().pause = std::chrono::milliseconds(1);
  optimize();
  EXPECT_EQ(workload_->script().most_timings, 1);
  EXPECT_GE(workload_->script().starts, 8);
}

TEST_F(Spec_3_2, OneAtATimeWhereTheEnvironmentOrThePayloadSaysSo) {
  use_forge();
  values_["KERNEL_OPT_MAX_PARALLEL"] = "1";
  for (int i = 1; i <= 3; ++i) add_kernel(i, 1000, "");
  open();
  EXPECT_EQ(optimize()["max_parallel"], 1);
  EXPECT_EQ(optimize({{"max_parallel", 2}})["status"], "skipped") << "all were judged";
}

TEST_F(Spec_3_2, NoBackendStartsWithThreeMinutesOrLessOfItsLadder) {
  use_forge();
  add_kernel(1, 1000, tile_lines("k1", "tile"));
  open();
  const Json result = optimize({{"kernel_budget_min", 1e-9}});
  EXPECT_EQ(result["status"], "timeout");
  EXPECT_EQ(result["error_class"], "ladder_timeout");
  EXPECT_TRUE(attempt_rows().empty());
}

TEST_F(Spec_3_2, ShortSessionIsUsedAndAnEndingOneIsNot) {
  use_forge();
  add_kernel(1, 1000, tile_lines("k1", "tile"));
  deadline_ = Deadline::in_seconds(9);
  open();
  EXPECT_EQ(optimize()["error_class"], "ladder_timeout");
  deadline_ = Deadline::in_seconds(100);
  EXPECT_EQ(decision_of(optimize()), "KEEP");
}

TEST_F(Spec_11_Budgets, LadderOfTheEnvironmentHoldsWhereThePayloadNamesNone) {
  use_forge();
  values_["KERNEL_OPT_KERNEL_BUDGET_MIN"] = "0.000000001";
  add_kernel(1, 1000, tile_lines("k1", "tile"));
  open();
  EXPECT_EQ(optimize()["error_class"], "ladder_timeout");
  EXPECT_EQ(decision_of(optimize({{"kernel_budget_min", 5}})), "KEEP");
}

TEST_F(Spec_11_Budgets, BudgetOfTheEnvironmentWinsOverThePayload) {
  use_forge();
  values_["KERNEL_OPT_BACKEND_BUDGET_MIN"] = "0.000000001";
  add_kernel(1, 1000, tile_lines("k1", "tile"));
  open();
  EXPECT_EQ(optimize({{"budget_minutes", 5}})["error_class"], "ladder_timeout");
}

class Thrower final : public Backend {
 public:
  std::string name() const override { return "forge"; }
  Json configuration(const task::Context&) const override { return Json::object(); }
  Outcome optimize(Attempt&) override { throw std::runtime_error("broken"); }
};

TEST_F(Spec_3_2, BackendThatThrowsFailsItsAttemptAlone) {
  use_forge();
  add_kernel(1, 1000, "");
  backends_ = {std::make_shared<Thrower>()};
  open();
  const Json result = optimize();
  EXPECT_EQ(result["status"], "failed");
  EXPECT_EQ(result["error_class"], "backend_exception");
  EXPECT_EQ(attempt_rows().at(0)["status"], "failed");
}

TEST_F(Spec_3_2, StopIsNoAttempt) {
  use_forge();
  add_kernel(1, 1000, tile_lines("k1", "tile"));
  open();
  workload_->script().before = [&](const std::string& call) {
    if (call == "load after") stop_.request_stop();
  };
  const Json result = optimize();
  EXPECT_EQ(result["error_class"], "cancelled");
  EXPECT_TRUE(session_->state().get("kernel_opt_task_attempts").empty());
}

TEST_F(Optimization, ProgressNamesKernelAttemptAndBest) {
  use_forge();
  add_kernel(1, 1000, tile_lines("k1", "tile"));
  open();
  const Json result = optimize();
  ASSERT_FALSE(progress_.empty());
  EXPECT_EQ(progress_.back().kernel, "k1");
  EXPECT_EQ(progress_.back().attempt, text_of(result["attempts"][0], "attempt_id"));
  EXPECT_EQ(progress_.back().best_so_far, 2.0);
  EXPECT_GT(progress_.back().seconds_left, 0);
}

TEST_F(Spec_11_Devices, ATaskThatNeedsMoreThanOneIsNotAvailableAndNoAttempt) {
  use_forge();
  values_["KERNEL_AGENT_NUM_GPUS"] = "2";
  add_fast_kernel(1);
  open();
  const Json result = optimize();
  EXPECT_EQ(result["error_class"], "not_available") << result.dump(2);
  EXPECT_EQ(result["num_gpus"], 2);
  EXPECT_TRUE(attempt_rows().empty());
  EXPECT_TRUE(session_->state().get("kernel_opt_task_attempts").empty());
}

TEST_F(Spec_11_Devices, TheVariableWinsOverWhatTheCandidateRecommends) {
  use_forge();
  add_fast_kernel(1);
  candidates_["hot_kernels"][0]["num_gpus_recommended"] = 2;
  values_["KERNEL_AGENT_NUM_GPUS"] = "1";
  open();
  const Json result = optimize();
  EXPECT_EQ(decision_of(result), "KEEP") << result.dump(2);
  EXPECT_EQ(result["num_gpus"], 1);
}

TEST_F(Spec_11_Devices, WithoutItTheCandidateRecommends) {
  use_forge();
  add_fast_kernel(1);
  candidates_["hot_kernels"][0]["num_gpus_recommended"] = 2;
  open();
  EXPECT_EQ(optimize()["error_class"], "not_available");
}

TEST_F(Spec_3_2, ParallelBackendsIsSaidByTheResult) {
  use_forge();
  values_["KERNEL_OPT_PARALLEL_BACKENDS"] = "on";
  add_fast_kernel(1);
  add_fast_kernel(2);
  open();
  EXPECT_EQ(optimize()["parallel_backends"], true);
}

}  // namespace
}  // namespace hyperloom::optimize
