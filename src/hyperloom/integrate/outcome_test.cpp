// What integrations leave behind: attempts, rejections, waiting records, stack and ledger.
#include <gtest/gtest.h>

#include <optional>
#include <stdexcept>

#include "hyperloom/core/testing.h"
#include "hyperloom/integrate/gain_ledger.h"
#include "hyperloom/integrate/integrate_testing.h"

namespace hyperloom::integrate {
namespace {

using Spec_7_5 = Integrate;
using Spec_7_6_Integrate = Integrate;
using Spec_7_7_Drain = Integrate;
using Spec_7_8_Integrate = Integrate;

TEST_F(Spec_7_5, ARejectedPatchIsSkippedByContent) {
  world_.queue("i1", kernel_text("ka", 6000));
  world_.run("i1");
  const Json again = world_.run("i1");
  EXPECT_EQ(text_of(again, "status"), "skipped");
  EXPECT_EQ(World::verdict(again), "REVERT kernel_patch_rejected");
  EXPECT_EQ(text_of(again, "source"), "shared_state_kernel_rejection");
  // The same content under another name.
  world_.queue("i2", kernel_text("ka", 6000));
  const Json copy = world_.run("i2");
  EXPECT_EQ(text_of(copy, "status"), "skipped");
  EXPECT_EQ(World::verdict(copy), "REVERT kernel_patch_rejected");
  EXPECT_EQ(world_.decisions().size(), 1u);
}

TEST_F(Spec_7_5, AttemptsHaveTheFieldsOfTheDocument) {
  world_.queue("i1", kernel_text("ka", 4980));
  world_.run("i1");
  const Json state = world_.state();
  ASSERT_EQ(state["kernel_integrate_attempts"].size(), 1u);
  const std::string key = state["kernel_integrate_attempts"].begin().key();
  const Json& entry = state["kernel_integrate_attempts"][key];
  EXPECT_EQ(key.size(), 64u) << "a sha256";
  const Json& attempt = entry["attempts"][0];
  for (const char* field : {"decision", "status", "error_class", "is_fault", "new_tput", "gain_pct",
                            "gain_low_pct", "gain_high_pct", "pairs", "decision_reason",
                            "artifact_kind", "validation_tier", "workspace", "ts", "cycle"}) {
    EXPECT_TRUE(attempt.contains(field)) << field;
  }
  EXPECT_EQ(text_of(attempt, "workspace"), world_.layout().integration("i1").string());
  EXPECT_EQ(entry["attempt_count"], 1);
  EXPECT_EQ(entry["verdict_attempt_count"], 1);
  EXPECT_EQ(number_of(entry, "fault_count"), 0);
  EXPECT_EQ(entry["rejected"], true);
  EXPECT_EQ(entry["retryable"], false);
  EXPECT_EQ(entry["last_decision"], "REVERT");
  const Json& rejected = state["rejected_kernel_patches"][key];
  for (const char* field : {"key", "reason", "attempt_count", "best_gain_pct"}) {
    EXPECT_TRUE(rejected.contains(field)) << field;
  }
  EXPECT_EQ(rejected["keep_threshold_pct"], 1.0);
}

TEST_F(Spec_7_5, WithoutAGroupTheIdIsRejected) {
  world_.queue("i1", kernel_text("ka", 6000));
  world_.queue("i2", kernel_text("kb", 6000), "b.loom");
  world_.change(
      [](Json& state) { state["pending_kernel_integrations"]["i2"].erase("task_group_key"); });
  world_.run("i1");
  EXPECT_TRUE(world_.state()["rejected_kernel_ids"].empty());
  world_.run("i2");
  EXPECT_EQ(world_.state()["rejected_kernel_ids"], Json({"k002"}));
}

TEST_F(Spec_7_5, AGainThatWasNeverMeasuredIsAbsent) {
  world_.queue("i1", kernel_text("ka", 4000, "// fake: crash\n"));
  world_.run("i1");
  EXPECT_FALSE(world_.state()["kernel_integrate_attempts"].front().contains("best_gain_pct"));
}

TEST_F(Spec_7_5, AFaultIsRetriedOnceAndThenRejected) {
  world_.queue("i1", kernel_text("ka", 4000, "// fake: crash\n"));
  world_.run("i1");
  EXPECT_EQ(text_of(world_.pending("i1"), "status"), "pending");
  Json state = world_.state();
  const std::string key = state["kernel_integrate_attempts"].begin().key();
  EXPECT_TRUE(flag_of(state["kernel_integrate_attempts"][key], "retryable"));
  EXPECT_TRUE(state["kernel_integrate_attempts"][key]["attempts"][0]["is_fault"]);
  world_.run("i1");
  state = world_.state();
  EXPECT_EQ(text_of(world_.pending("i1"), "status"), "rejected");
  EXPECT_EQ(state["rejected_kernel_patches"][key]["reason"], "fault_attempts_exhausted_2");
  EXPECT_EQ(state["kernel_opt_task_attempts"]["task-a.loom"]["integration_status"], "rejected");
}

TEST_F(Spec_7_5, ARevertIsRejectedWithItsReasonBesideIt) {
  world_.queue("i1", kernel_text("ka", 4980));
  const Json result = world_.run("i1");
  EXPECT_EQ(World::verdict(result), "REVERT below_threshold");
  const Json rejected = world_.state()["rejected_kernel_patches"].front();
  EXPECT_EQ(rejected["reason"], "revert_decision");
  EXPECT_EQ(rejected["decision_reason"], "below_threshold");
  EXPECT_NEAR(number_of(rejected, "best_gain_pct"), 0.2, 0.01);
  const Json positive = world_.state()["small_positives"]["i1"];
  EXPECT_EQ(positive["status"], "small_positive");
  EXPECT_EQ(positive["measured_end_to_end"], true);
}

TEST_F(Spec_7_5, AWaitingRecordHasItsTurnOnceAtSweepEntry) {
  world_.queue("i1", kernel_text("ka", 2000), "a.loom", 1.25);
  world_.run("i1");
  EXPECT_TRUE(ready_integrations(world_.state()).empty());
  ASSERT_TRUE(give_waiting_their_turn(world_.context()));
  EXPECT_EQ(ready_integrations(world_.state()), std::vector<std::string>{"i1"});
  EXPECT_EQ(World::drain(world_.context(), 10).size(), 1u);
  EXPECT_TRUE(ready_integrations(world_.state()).empty());
  EXPECT_EQ(world_.state()["rejected_kernel_patches"].size(), 0u);
}

TEST_F(Spec_7_5, ANamedRequestTriesAWaitingRecordAgain) {
  world_.queue("i1", kernel_text("ka", 2000), "a.loom", 1.25);
  world_.run("i1");
  world_.change(
      [](Json& state) { state["pending_kernel_integrations"]["i1"]["micro_speedup"] = 2.5; });
  EXPECT_EQ(World::verdict(world_.run("i1")), "KEEP gain_confirmed");
}

TEST_F(Integrate, IR_3_EveryKeepIsIntegratedBestFirst) {
  world_.queue("i1", kernel_text("kb", 3000), "b.loom");
  world_.queue("i2", kernel_text("ka", 4000));
  world_.queue("i3", kernel_text("ka", 3000), "a.loom", 3.0);
  const auto results = World::drain(world_.context(), 10);
  ASSERT_EQ(results.size(), 2u);
  EXPECT_EQ(results[0]["integration_id"], "i3") << "the larger micro speed-up of a source";
  EXPECT_EQ(results[1]["integration_id"], "i1");
  EXPECT_TRUE(ready_integrations(world_.state()).empty()) << "the source of i2 is kept already";
  EXPECT_EQ(text_of(world_.pending("i2"), "reason"), "source_in_stack");
  const Json named = world_.run("i2");
  EXPECT_EQ(World::verdict(named), "REVERT apply_failed");
  EXPECT_TRUE(text_of(named, "error").contains("superseded"));
  EXPECT_EQ(world_.read("tree/a.loom"), kernel_text("ka", 3000));
}

TEST_F(Spec_7_6_Integrate, TheStackIsMeasuredAnewAfterAKeep) {
  world_.queue("i1", kernel_text("ka", 4000));
  // The pairs agree; the measurement from a fresh start is a little lower.
  world_.script().before = [&](const std::string& call) {
    world_.script().noise = {call == "throughput stack" ? -0.005 : 0.0};
  };
  const Json result = world_.run("i1");
  EXPECT_NEAR(number_of(result, "stack_tput"), 0.995 * 1e9 / 9000, 1);
  const Json state = world_.state();
  ASSERT_EQ(state["gain_ledger"].size(), 2u);
  EXPECT_EQ(state["gain_ledger"][1]["kind"], "rebaseline");
  EXPECT_EQ(state["gain_ledger"][1]["before"], state["gain_ledger"][0]["after"]);
  EXPECT_FALSE(state.contains("rebaseline_due"));
  EXPECT_NEAR(number_of(state["current_best"], "tput"), 1e9 / 9000, 1) << "of the deciding pairs";
}

TEST_F(Spec_7_6_Integrate, AReBaselineThatAKillLeftOutIsMadeUpFor) {
  world_.queue("i1", kernel_text("ka", 4000));
  world_.run("i1");
  world_.change([](Json& state) { state["rebaseline_due"] = "keep|i1"; });
  world_.script().noise = {-0.005};
  ASSERT_TRUE(settle_rebaseline(world_.context()));
  EXPECT_EQ(world_.state()["gain_ledger"].back()["kind"], "rebaseline");
  const Json ledger = world_.state()["gain_ledger"];
  ASSERT_TRUE(settle_rebaseline(world_.context()));
  EXPECT_EQ(world_.state()["gain_ledger"], ledger);
}

TEST_F(Integrate, IR_3_ABudgetEndsTheDrain) {
  world_.queue("i1", kernel_text("kb", 3000), "b.loom");
  world_.queue("i2", kernel_text("ka", 4000));
  EXPECT_EQ(World::drain(world_.context(), 1).size(), 1u);
  world_.stop.request_stop();
  EXPECT_TRUE(World::drain(world_.context(), 10).empty());
}

TEST_F(Spec_7_6_Integrate, TheSecondKeepStartsFromTheFirst) {
  world_.queue("i1", kernel_text("ka", 4000));
  world_.queue("i2", kernel_text("kb", 3000), "b.loom");
  EXPECT_EQ(World::drain(world_.context(), 10).size(), 2u);
  const Json state = world_.state();
  int64_t sum = 0;
  for (const Json& row : state["gain_ledger"]) sum += row["delta_tput"].get<int64_t>();
  EXPECT_EQ(sum, to_millionths(1e9 / 8000) - to_millionths(1e5));
  EXPECT_EQ(state["optimization_stack"].size(), 2u);
  EXPECT_NEAR(number_of(state, "cumulative_gain_validated"), 25, 1e-6);
}

TEST_F(Spec_7_6_Integrate, RebaselineEntersTheDifferenceIntoTheLedger) {
  world_.queue("i1", kernel_text("ka", 4000));
  world_.run("i1");
  world_.script().noise = {-0.001};
  const auto measured = rebaseline_stack(world_.context(), "final");
  ASSERT_TRUE(measured);
  const Json row = world_.state()["gain_ledger"].back();
  EXPECT_EQ(row["kind"], "rebaseline");
  EXPECT_EQ(row["after"].get<int64_t>(), to_millionths(*measured));
  EXPECT_LT(row["delta_tput"].get<int64_t>(), 0);
}

TEST_F(Spec_7_5, AFailedRevertForbidsFurtherMeasurements) {
  world_.queue("i1", kernel_text("ka", 6000));
  world_.script().before = [&](const std::string& call) {
    // Somebody edits the patched file while it is measured.
    if (call == "throughput b" && world_.state().contains("active_integration")) {
      world_.write("tree/a.loom", "mine\n");
    }
  };
  const Json result = world_.run("i1");
  EXPECT_EQ(text_of(result, "status"), "failed");
  EXPECT_EQ(text_of(result, "error_class"), "patch_revert_incomplete");
  EXPECT_EQ(text_of(result, "patch_cleanup_status"), "recovery_required");
  EXPECT_EQ(world_.read("tree/a.loom"), "mine\n");
  world_.script().before = nullptr;
  world_.queue("i2", kernel_text("kb", 3000), "b.loom");
  const size_t measured = world_.script().count("throughput");
  const Json next = world_.run("i2");
  EXPECT_EQ(World::verdict(next), "NEEDS_REVIEW recovery_required");
  EXPECT_EQ(world_.script().count("throughput"), measured);
  // Back to what was applied, the next one cleans up by itself.
  world_.write("tree/a.loom", kernel_text("ka", 6000));
  EXPECT_EQ(World::verdict(world_.run("i2")), "KEEP gain_confirmed");
  EXPECT_EQ(world_.read("tree/a.loom"), kernel_text("ka", 5000));
}

TEST_F(Integrate, ARedispatchedRequestGetsTheOutcomeThatWasRecorded) {
  world_.queue("i1", kernel_text("ka", 6000));
  const Json first = world_.run("i1", {{"request_id", "m1"}});
  const Json told = world_.run("i1", {{"request_id", "m2"}, {"redispatch_of", "m1"}});
  EXPECT_EQ(World::verdict(told), World::verdict(first));
  EXPECT_EQ(world_.decisions().size(), 1u);
}

TEST_F(Spec_7_7_Drain, AnExceptionMarksTheRecordAndCountsAsAFault) {
  world_.queue("i1", kernel_text("ka", 4000));
  task::Context context = world_.context();
  context.progress = [](const task::Progress&) { throw std::runtime_error("nobody looks"); };
  const auto results = World::drain(context, 1);
  ASSERT_EQ(results.size(), 1u);
  EXPECT_EQ(results[0]["error_class"], "handler_exception");
  expect_restored();
  EXPECT_EQ(text_of(world_.pending("i1"), "status"), "dispatch_failed");
  const Json entry = world_.state()["kernel_integrate_attempts"].front();
  EXPECT_EQ(entry["fault_count"], 1);
  EXPECT_TRUE(entry["retryable"]);
}

TEST_F(Spec_7_7_Drain, AFailedDispatchIsTriedOnceMore) {
  world_.queue("i1", kernel_text("ka", 4000));
  task::Context context = world_.context();
  context.progress = [](const task::Progress&) { throw std::runtime_error("nobody looks"); };
  ASSERT_EQ(World::drain(context, 1).size(), 1u);
  const auto results = World::drain(world_.context());
  ASSERT_EQ(results.size(), 1u);
  EXPECT_EQ(World::verdict(results[0]), "KEEP gain_confirmed");
  EXPECT_EQ(text_of(world_.pending("i1"), "status"), "integrated");
}

TEST_F(Spec_7_7_Drain, TheSecondFailedDispatchRejects) {
  world_.queue("i1", kernel_text("ka", 4000));
  task::Context context = world_.context();
  context.progress = [](const task::Progress&) { throw std::runtime_error("nobody looks"); };
  EXPECT_EQ(World::drain(context).size(), 2u);
  EXPECT_EQ(text_of(world_.pending("i1"), "status"), "rejected");
  EXPECT_EQ(world_.state()["rejected_kernel_patches"].front()["reason"],
            "fault_attempts_exhausted_2");
  expect_restored();
}

TEST_F(Spec_7_8_Integrate, AKeepThatTheDiskDoesNotTakeIsNone) {
  world_.queue("i1", kernel_text("ka", 4000));
  std::optional<FullDisk> disk;
  world_.script().before = [&](const std::string& call) {
    // The sources are small enough to be written, the state is not.
    if (call == "compare b ") disk.emplace(600);
  };
  const Json result = world_.run("i1");
  disk.reset();
  EXPECT_EQ(World::verdict(result), "NEEDS_REVIEW not_recorded") << result;
  EXPECT_EQ(text_of(result, "status"), "failed");
  EXPECT_EQ(picture(world_.tree()), before_);
  EXPECT_TRUE(world_.state()["optimization_stack"].empty());
  // The state on the disk still says that the patch may be there.
  for (const Json& action : recover(world_.context())) {
    EXPECT_EQ(action["result"]["status"], "ok") << action;
  }
  expect_restored();
  world_.script().before = nullptr;
  EXPECT_EQ(World::verdict(world_.run("i1")), "KEEP gain_confirmed");
}

}  // namespace
}  // namespace hyperloom::integrate
