#include "hyperloom/integrate/integrate.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "hyperloom/integrate/gain_ledger.h"
#include "hyperloom/integrate/integrate_testing.h"
#include "hyperloom/integrate/kept.h"
#include "hyperloom/integrate/patch.h"

namespace hyperloom::integrate {
namespace {

using Spec_3_3 = Integrate;
using Spec_7_3 = Integrate;
using Spec_7_4_Integrate = Integrate;
using Spec_14_Integrate = Integrate;

TEST_F(Integrate, AGainIsKeptAndEverythingSaysTheSame) {
  const std::string better = kernel_text("ka", 4000);
  world_.queue("i1", better);
  const Json result = world_.run("i1");
  ASSERT_EQ(World::verdict(result), "KEEP gain_confirmed") << result;
  EXPECT_EQ(text_of(result, "status"), "ok");
  EXPECT_NEAR(number_of(result, "gain_pct"), 100.0 / 9, 1e-6);
  EXPECT_EQ(text_of(result, "patch_cleanup_action"), "finalize");
  EXPECT_EQ(text_of(result, "patch_cleanup_status"), "complete");
  EXPECT_EQ(world_.read("tree/a.loom"), better);
  const Json state = world_.state();
  EXPECT_EQ(text_of(world_.pending("i1"), "status"), "integrated");
  ASSERT_EQ(state["optimization_stack"].size(), 1u);
  EXPECT_EQ(state["optimization_stack"][0]["integration_id"], "i1");
  EXPECT_NEAR(number_of(state["current_best"], "tput"), 1e9 / 9000, 1e-3);
  EXPECT_EQ(state["gain_ledger"].back()["kind"], "keep");
  EXPECT_EQ(ledger_final(state) - ledger_baseline(state),
            state["gain_ledger"].back()["after"].get<int64_t>() - to_millionths(1e5));
  EXPECT_EQ(state["last_trace_analyze"]["tree_hash"],
            *workload::tree_hash(world_.tree(), world_.workload().files()));
  const auto log = world_.decisions();
  ASSERT_EQ(log.size(), 1u);
  EXPECT_EQ(log[0]["id"], "i1");
  EXPECT_EQ(log[0]["decision"], "KEEP");
  EXPECT_FALSE(state.contains("active_integration"));
}

TEST_F(Spec_3_3, TheResultHasItsFields) {
  world_.queue("i1", kernel_text("ka", 4000));
  const Json result = world_.run("i1");
  for (const char* field : {"status",
                            "decision",
                            "patch_cleanup_status",
                            "patch_cleanup_action",
                            "kernel_id",
                            "patch_path",
                            "target_file",
                            "base_tput",
                            "new_tput",
                            "gain_pct",
                            "report_path",
                            "workspace",
                            "extra_server_args",
                            "extra_envs",
                            "apply_result",
                            "revert_result",
                            "finalize_result",
                            "rebuild_check",
                            "task_group_key",
                            "integration_id",
                            "decision_reason",
                            "stack_incremental_gain_pct",
                            "delta_tput",
                            "gain_low_pct",
                            "gain_high_pct",
                            "pairs",
                            "noise_floor_pct",
                            "plausible_max_pct",
                            "accuracy",
                            "baseline_accuracy",
                            "accuracy_pass",
                            "accuracy_gate",
                            "source_import_confirmed",
                            "source_import_evidence",
                            "validation_tier",
                            "error_class",
                            "error"}) {
    EXPECT_TRUE(result.contains(field)) << field;
  }
}

TEST_F(Spec_3_3, AVendorPlaybookHasNoPatchToEvaluate) {
  world_.queue("i1", kernel_text("ka", 4000));
  world_.change([](Json& state) {
    state["kernel_opt_task_attempts"]["task-a.loom"]["vendor_playbook_deploy_blocked"] = true;
  });
  const Json result = world_.run("i1");
  EXPECT_EQ(text_of(result, "error_class"), "vendor_playbook_not_deployable");
  expect_waits("i1", result);
}

TEST_F(Spec_3_3, WithoutABaselineThereIsNothingToJudgeAgainst) {
  world_.queue("i1", kernel_text("ka", 4000));
  world_.change([](Json& state) { state["baseline_tput"] = 0; });
  const Json result = world_.run("i1");
  EXPECT_EQ(text_of(result, "error_class"), "");
  EXPECT_NE(text_of(result, "error"), "");
  expect_waits("i1", result);
}

TEST_F(Spec_3_3, MissingInputsAreListed) {
  const Json result = integrate({{"kernel_id", "k009"}}, world_.context());
  EXPECT_EQ(World::verdict(result), "REVERT missing_integration_inputs");
  EXPECT_EQ(result["missing"], Json({"patch_path", "target_file"}));
  expect_restored();
}

TEST_F(Spec_3_3, FieldsOfAWrongTypeAreNamed) {
  const Json result = integrate({{"keep_threshold_pct", "much"}}, world_.context());
  EXPECT_EQ(text_of(result, "error_class"), "invalid_payload");
  EXPECT_TRUE(text_of(result, "error").contains("keep_threshold_pct"));
}

TEST_F(Spec_3_3, ARefusedPatchFailsToApply) {
  world_.queue("i1", "```\n");
  const Json result = world_.run("i1");
  EXPECT_EQ(World::verdict(result), "REVERT apply_failed") << result;
  EXPECT_EQ(text_of(result, "status"), "failed");
  EXPECT_TRUE(text_of(result, "error").contains("refused_patch"));
  expect_restored();
}

TEST_F(Spec_3_3, ADryRunMeasuresNothing) {
  world_.queue("i1", kernel_text("ka", 4000));
  const Json result = world_.run("i1", {{"dry_run_patch", true}});
  EXPECT_EQ(World::verdict(result), "REVERT patch_not_applied");
  EXPECT_EQ(world_.script().count("throughput b"), 13u) << "of the noise floor alone";
  EXPECT_EQ(text_of(world_.pending("i1"), "status"), "pending");
  expect_restored();
}

TEST_F(Spec_3_3, AnUntrustedPreappliedManifestIsRefused) {
  world_.queue("i1", kernel_text("ka", 4000));
  world_.write("elsewhere/manifest.json", "{}");
  const Json result = world_.run(
      "i1", {{"preapplied_apply_result",
              {{"manifest_path", (world_.base() / "elsewhere/manifest.json").string()}}}});
  EXPECT_EQ(World::verdict(result), "REVERT apply_failed");
  EXPECT_TRUE(text_of(result, "error").contains("untrusted_preapplied_manifest"));
  expect_restored();
}

TEST_F(Spec_14_Integrate, ASourceTreeThatChangedSinceTheAnalysisIsNotTouched) {
  world_.queue("i1", kernel_text("ka", 4000));
  world_.write("tree/b.loom", kernel_text("kb", 3999));
  before_ = picture(world_.tree());
  const Json result = world_.run("i1");
  EXPECT_EQ(World::verdict(result), "NEEDS_REVIEW tree_drift");
  EXPECT_TRUE(result["apply_result"].is_null());
  expect_waits("i1", result);
}

TEST_F(Spec_3_3, ACandidateThatDoesNotRunIsReverted) {
  for (const std::string fault : {"build_failed", "crash", "hang", "garbage"}) {
    const std::string id = "i-" + fault;
    world_.queue(id, kernel_text("ka", 4000, "// fake: " + fault + "\n"));
    const Json result = world_.run(id);
    EXPECT_EQ(text_of(result, "decision"), "REVERT") << fault;
    EXPECT_EQ(text_of(result, "status"), "failed");
    EXPECT_EQ(result["decision_reason"], result["error_class"]);
    EXPECT_TRUE(text_of(result, "error_class")
                    .starts_with(fault == "build_failed" ? "build" : "workload_"));
    expect_restored();
  }
}

TEST_F(Spec_3_3, WhereTheOriginalFailsAsWellNothingIsJudged) {
  world_.queue("i1", kernel_text("ka", 4000, "// fake: crash\n"));
  world_.change([](Json& state) { state["noise_floor"] = {{"pct", 0.1}}; });
  // The fake reads the copy of the original when it is loaded: it crashes too.
  world_.script().before = [&](const std::string& call) {
    if (call != "load stack") return;
    for (const auto& entry : fs::recursive_directory_iterator(world_.layout().session)) {
      if (entry.path().filename() == "a.loom") {
        std::ofstream(entry.path(), std::ios::app) << "// fake: crash\n";
      }
    }
  };
  const Json result = world_.run("i1");
  EXPECT_EQ(World::verdict(result), "NEEDS_REVIEW evaluation_impossible") << result;
  EXPECT_EQ(text_of(result, "error_class"), "workload_crashed");
  expect_waits("i1", result);
}

TEST_F(Spec_3_3, AHarnessThatRaisesIsNoVerdict) {
  world_.queue("i1", kernel_text("ka", 4000));
  world_.script().before = [](const std::string& call) {
    if (call == "compare b ") throw std::runtime_error("no more");
  };
  const Json result = world_.run("i1");
  EXPECT_EQ(World::verdict(result), "NEEDS_REVIEW rebaseline_exception");
  expect_waits("i1", result);
}

TEST_F(Spec_14_Integrate, StoppedWhileMeasuringTheRecordWaits) {
  world_.queue("i1", kernel_text("ka", 4000));
  world_.script().before = [&](const std::string& call) {
    if (call == "load b" && world_.state().contains("active_integration")) {
      world_.stop.request_stop();
    }
  };
  const Json result = world_.run("i1");
  EXPECT_EQ(World::verdict(result), "NEEDS_REVIEW stopped");
  EXPECT_EQ(text_of(result, "error_class"), "session_stopped");
  expect_waits("i1", result);
}

TEST_F(Spec_14_Integrate, AnUnverifiedBuildWaits) {
  // The tree is another one, the code that is loaded is not.
  world_.queue("i1", kernel_text("ka", 5000, "//~ faster\n"));
  const Json result = world_.run("i1");
  EXPECT_EQ(World::verdict(result), "NEEDS_REVIEW source_import_disproved");
  EXPECT_EQ(result["source_import_confirmed"], false);
  expect_waits("i1", result);
}

TEST_F(Spec_7_4_Integrate, WithoutTheStrictSwitchTheSameCodeIsMeasured) {
  for (const char* name :
       {"HL_CONFIRM_SOURCE_IMPORTED", "HL_CONFIRM_SOURCE_IMPORTED_STRICT", "HL_HONEST_E2E"}) {
    TempFolder folder;
    World world(folder.path());
    world.variables = {{name, "off"}};
    world.open();
    world.queue("i1", kernel_text("ka", 5000, "//~ faster\n"));
    const Json result = world.run("i1");
    EXPECT_EQ(World::verdict(result), "REVERT within_noise") << name;
    EXPECT_EQ(result["source_import_confirmed"], false);
  }
}

TEST_F(Spec_14_Integrate, AMissingAccuracyRoundWaits) {
  world_.queue("i1", kernel_text("ka", 4000, "// fake: compare_failed\n"));
  const Json result = world_.run("i1");
  EXPECT_EQ(World::verdict(result), "NEEDS_REVIEW accuracy_evidence_missing") << result;
  EXPECT_EQ(text_of(result, "error_class"), "");
  expect_waits("i1", result);
}

TEST_F(Spec_7_4_Integrate, WithTheAccuracyGateOffAMissingRoundPasses) {
  TempFolder folder;
  World world(folder.path());
  world.variables = {{"INFERENCE_OPTIMIZER_REQUIRE_KERNEL_ACCURACY", "off"}};
  world.open();
  world.queue("i1", kernel_text("ka", 4000, "// fake: compare_failed\n"));
  const Json result = world.run("i1");
  EXPECT_EQ(World::verdict(result), "KEEP gain_confirmed");
  EXPECT_EQ(text_of(result, "accuracy_gate"), "off");
  // Framework apply-back is strict whatever the switch says.
  world.queue("i2", kernel_text("kb", 3000, "// fake: compare_failed\n"), "b.loom");
  EXPECT_EQ(World::verdict(world.run("i2", {{"artifact_kind", "framework_applyback"}})),
            "NEEDS_REVIEW accuracy_evidence_missing");
}

TEST_F(Spec_7_4_Integrate, ALossIsRevertedByteForByte) {
  world_.queue("i1", kernel_text("ka", 6000));
  const Json result = world_.run("i1");
  EXPECT_EQ(World::verdict(result), "REVERT below_threshold");
  EXPECT_EQ(text_of(result, "patch_cleanup_action"), "revert");
  expect_restored();
  EXPECT_EQ(text_of(world_.pending("i1"), "status"), "rejected");
  EXPECT_EQ(world_.decisions().at(0)["reason"], "below_threshold");
}

TEST_F(Spec_7_4_Integrate, WrongResultsAreReverted) {
  world_.queue("i1", kernel_text("ka", 4000, "// fake: wrong\n"));
  const Json result = world_.run("i1");
  EXPECT_EQ(World::verdict(result), "REVERT correctness_failed");
  EXPECT_EQ(result["accuracy_pass"], false);
  expect_restored();
}

TEST_F(Spec_7_4_Integrate, WrongResultsOnAdversarialInputsAreReverted) {
  world_.queue("i1", kernel_text("ka", 4000, "// fake: wrong_adversarial\n"));
  EXPECT_EQ(World::verdict(world_.run("i1")), "REVERT correctness_failed");
}

TEST_F(Spec_7_4_Integrate, ADropOfAccuracyOnHeldOutInputsIsReverted) {
  world_.queue("i1", kernel_text("ka", 4000, "// fake: accuracy 0.94\n"));
  const Json result = world_.run("i1");
  EXPECT_EQ(World::verdict(result), "REVERT accuracy_regression");
  EXPECT_EQ(result["baseline_accuracy"], 1.0);
  EXPECT_EQ(result["accuracy"], 0.94);
  world_.queue("i2", kernel_text("ka", 4000, "// fake: accuracy 0.95\n"));
  EXPECT_EQ(World::verdict(world_.run("i2")), "KEEP gain_confirmed");
}

TEST_F(Spec_7_4_Integrate, TheAccuracyRoundOnlyRunsOnceTheGainRuleHolds) {
  world_.queue("i1", kernel_text("ka", 5000, "// same\n"));
  const Json result = world_.run("i1");
  EXPECT_EQ(text_of(result, "accuracy_gate"), "not_run");
  EXPECT_EQ(world_.script().count("compare"), 0u);
}

TEST_F(Spec_7_4_Integrate, AnImplausibleGainIsMeasuredOnceMoreAndNeverKept) {
  // ka has half of the time and is claimed to be 1.25 times as fast: at most 11.1 % are possible.
  world_.queue("i1", kernel_text("ka", 2000), "a.loom", 1.25);
  const int starts = world_.script().starts;
  const Json result = world_.run("i1");
  EXPECT_EQ(World::verdict(result), "NEEDS_REVIEW implausible") << result;
  EXPECT_NEAR(number_of(result, "plausible_max_pct"), 100.0 / 9, 0.01);
  EXPECT_EQ(world_.script().starts - starts, 3) << "noise, pairs, and once more";
  expect_waits("i1", result);
}

TEST_F(Spec_7_4_Integrate, AGainThatIsPlausibleTheSecondTimeIsKept) {
  world_.queue("i1", kernel_text("ka", 4200), "a.loom", 1.25);
  world_.change([](Json& state) { state["noise_floor"] = {{"pct", 0.1}}; });
  const int starts = world_.script().starts;
  // In the first run the original is disturbed.
  bool again = false;
  world_.script().before = [&](const std::string& call) {
    if (call == "load a") again = world_.script().starts - starts > 1;
    world_.script().noise = again || !call.starts_with("throughput a") ? std::vector<double>{0.0}
                                                                       : std::vector<double>{-0.1};
  };
  const Json result = world_.run("i1");
  EXPECT_EQ(World::verdict(result), "KEEP gain_confirmed") << result;
  EXPECT_GT(number_of(result, "first_gain_pct"), 11.2);
  EXPECT_NEAR(number_of(result, "gain_pct"), 100 * (10.0 / 9.2 - 1), 0.01);
}

TEST_F(Spec_7_3, TheSidesAreMeasuredInterleavedInOneProcess) {
  world_.queue("i1", kernel_text("ka", 4950));
  world_.change([](Json& state) { state["noise_floor"] = {{"pct", 0.1}}; });
  const int starts = world_.script().starts;
  world_.run("i1");
  EXPECT_EQ(world_.script().starts - starts, 1);
  std::vector<std::string> timed;
  for (const std::string& call : world_.script().calls()) {
    if (call.starts_with("throughput")) timed.push_back(call.substr(11));
  }
  ASSERT_GE(timed.size(), 14u);
  // One warm-up of each side is thrown away.
  EXPECT_EQ(std::vector(timed.begin(), timed.begin() + 4),
            (std::vector<std::string>{"a", "a", "b", "b"}));
  for (size_t i = 4; i < timed.size(); ++i) EXPECT_EQ(timed[i], i % 2 == 0 ? "a" : "b") << i;
}

TEST_F(Spec_7_3, WhileItMeasuresNobodyElseMeasuresOrWritesTheTree) {
  world_.queue("i1", kernel_text("ka", 4000));
  size_t looked = 0;
  world_.script().before = [&](const std::string& call) {
    if (!call.starts_with("throughput")) return;
    ++looked;
    for (const char* lane : {"workspace_mutation", "benchmark_lane", "profile_lane"}) {
      EXPECT_FALSE(world_.lanes().try_acquire(lane, "test")) << lane;
    }
    EXPECT_FALSE(TreeLock::acquire({world_.tree()}, Deadline::in_seconds(0), {}));
  };
  EXPECT_EQ(World::verdict(world_.run("i1")), "KEEP gain_confirmed");
  EXPECT_GT(looked, 30u);
}

TEST_F(Spec_7_3, TheNoiseFloorIsMeasuredOnceASession) {
  world_.queue("i1", kernel_text("ka", 4000));
  world_.queue("i2", kernel_text("kb", 3000), "b.loom");
  world_.script().noise = {0.002, -0.001, 0.0, 0.001, -0.002};
  world_.run("i1");
  const Json floor = world_.state()["noise_floor"];
  EXPECT_GT(number_of(floor, "pct"), 0);
  EXPECT_EQ(floor["pairs"], 12u);
  world_.run("i2");
  EXPECT_EQ(world_.state()["noise_floor"], floor);
}

TEST_F(Spec_7_3, NoiseAloneIsNotKept) {
  world_.script().noise = {0.02, -0.03, 0.01, 0.03, -0.02, -0.01, 0.0};
  world_.queue("i1", kernel_text("ka", 5000, "// the same in other words\n"));
  const Json result = world_.run("i1");
  EXPECT_EQ(World::verdict(result), "REVERT within_noise");
  EXPECT_EQ(result["pairs"], 40u);
}

TEST_F(Spec_7_3, ConfigurationAloneIsMeasuredWithoutAPatch) {
  world_.write("tree/a.loom", kernel_text("ka", 5000, "// fake: when tile 8 ka 0.5\n"));
  before_ = picture(world_.tree());
  world_.change([&](Json& state) {
    state["last_trace_analyze"]["tree_hash"] =
        *workload::tree_hash(world_.tree(), world_.workload().files());
  });
  const Json result = integrate({{"integration_id", "config-1"}, {"extra_envs", {{"tile", "8"}}}},
                                world_.context());
  EXPECT_EQ(World::verdict(result), "KEEP gain_confirmed") << result;
  EXPECT_EQ(picture(world_.tree()), before_);
  EXPECT_EQ(world_.state()["current_best"]["extra_envs"], Json({{"tile", "8"}}));
  // The next candidate is measured on top of it.
  world_.queue("i1", kernel_text("ka", 4800, "// fake: when tile 8 ka 0.5\n"));
  const Json next = world_.run("i1");
  EXPECT_NEAR(number_of(next, "measured_base_tput"), 1e9 / 7500, 1);
}

TEST_F(Spec_7_3, ConfigurationAloneIsTakenBackToo) {
  world_.write("tree/a.loom", kernel_text("ka", 5000, "// fake: when tile 8 ka 0.5\n"));
  world_.change([&](Json& state) {
    state["last_trace_analyze"]["tree_hash"] =
        *workload::tree_hash(world_.tree(), world_.workload().files());
  });
  integrate({{"integration_id", "config-1"}, {"extra_envs", {{"tile", "8"}}}}, world_.context());
  ASSERT_EQ(world_.state()["optimization_stack"].size(), 1u);
  EXPECT_EQ(text_of(undo_kept(world_.session(), world_.tree()), "status"), "ok");
  EXPECT_TRUE(world_.state()["current_best"].empty());
  EXPECT_TRUE(world_.state()["optimization_stack"].empty());
  EXPECT_EQ(text_of(undo_kept(world_.session(), world_.tree()), "reason"), "nothing_kept");
}

TEST_F(Spec_7_4_Integrate, AKernelPastItsRooflineIsMeasuredOnceMoreAndNeverKept) {
  // At 80 % of the roofline nothing can be 1.25 times as fast and more; the claim is 2.
  ASSERT_TRUE(
      write_json(world_.base() / "candidates.json", {{"hot_kernels",
                                                      {{{"kernel_id", "k001"},
                                                        {"name", "ka"},
                                                        {"e2e_share", 0.5},
                                                        {"efficiency_uncapped_pct", 80.0}}}}}));
  world_.change([&](Json& state) {
    state["last_trace_analyze"]["candidates_path"] = (world_.base() / "candidates.json").string();
  });
  world_.queue("i1", kernel_text("ka", 3500));
  const Json result = world_.run("i1");
  EXPECT_EQ(World::verdict(result), "NEEDS_REVIEW implausible") << result;
  EXPECT_EQ(world_.script().count("kernel_ns"), 2u);
  expect_waits("i1", result);
  // A claim that the loaded programs do not bear out does not matter.
  world_.queue("i2", kernel_text("ka", 4500));
  EXPECT_EQ(World::verdict(world_.run("i2")), "KEEP gain_confirmed");
}

TEST_F(Spec_7_3, TheRequestsTimeoutEndsTheMeasuringBudget) {
  world_.queue("i1", kernel_text("ka", 4000));
  world_.script().before = [](const std::string& call) {
    if (call == "throughput b") std::this_thread::sleep_for(std::chrono::milliseconds(5));
  };
  const Json result = world_.run("i1", {{"timeout_sec", 0.01}, {"budget_minutes", 100}});
  EXPECT_EQ(World::verdict(result), "REVERT within_noise");
  EXPECT_LT(number_of(result, "pairs"), 6);
}

TEST_F(Spec_3_3, APreappliedPatchIsMeasuredAndFinalized) {
  world_.queue("i1", kernel_text("ka", 4000));
  const Json applied =
      patch_apply({{"kernel_id", "k001"},
                   {"patch_path", (world_.base() / "candidates/i1.loom").string()},
                   {"target_file", (world_.tree() / "a.loom").string()},
                   {"known_roots", {world_.tree().string()}},
                   {"backup_root", (world_.layout().integration("i1") / "backup").string()}});
  ASSERT_EQ(text_of(applied, "status"), "ok") << applied;
  const Json result = world_.run("i1", {{"preapplied_apply_result", applied}});
  EXPECT_EQ(World::verdict(result), "KEEP gain_confirmed") << result;
  EXPECT_NEAR(number_of(result, "gain_pct"), 100.0 / 9, 1e-6) << "against the sources without it";
  EXPECT_EQ(text_of(patch_revert({{"manifest_path", applied["manifest_path"]}}), "error_class"),
            "patch_finalized");
}

TEST_F(Spec_3_3, APreappliedPatchThatLosesIsTakenBack) {
  world_.queue("i1", kernel_text("ka", 6000));
  const Json applied =
      patch_apply({{"kernel_id", "k001"},
                   {"patch_path", (world_.base() / "candidates/i1.loom").string()},
                   {"target_file", (world_.tree() / "a.loom").string()},
                   {"known_roots", {world_.tree().string()}},
                   {"backup_root", (world_.layout().integration("i1") / "backup").string()}});
  EXPECT_EQ(World::verdict(world_.run("i1", {{"preapplied_apply_result", applied}})),
            "REVERT below_threshold");
  expect_restored();
}

}  // namespace
}  // namespace hyperloom::integrate
