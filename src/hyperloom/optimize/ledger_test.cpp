#include "hyperloom/optimize/ledger.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "hyperloom/optimize/select.h"
#include "hyperloom/optimize/task_key.h"
#include "hyperloom/optimize/testing.h"
#include "loom/base/hash.h"

namespace hyperloom::optimize {
namespace {

Json result(const std::string& kernel, const std::string& decision) {
  Json made = {{"status", "ok"},
               {"kernel_id", kernel},
               {"source_file", kernel + ".loom"},
               {"gpu_pct", 20.0},
               {"verification",
                {{"micro_speedup", 1.5},
                 {"best_artifact_path", "best.loom"},
                 {"best_backend", "forge"},
                 {"best_artifact_bundle", {{"type", "patch_snapshot"}, {"patch_path", "p"}}}}}};
  if (!decision.empty()) made["proposal"] = {{"decision", decision}, {"reasons", {"r"}}};
  return made;
}
Json failed(const std::string& kernel, double share = 20) {
  Json made = result(kernel, "");
  made["status"] = "failed";
  made["error_class"] = "workload_crashed";
  made["gpu_pct"] = share;
  return made;
}
Json grouped(Json made, const std::string& key, const Json& members) {
  made["task_group_key"] = key;
  made["task_group_kernel_ids"] = members;
  return made;
}
std::string key_of(const std::string& kernel) { return legacy_task_key(kernel, kernel + ".loom"); }

class Ledger : public testing::Test {
 protected:
  Recorded record(const Json& made) { return record_kernel_opt(state_, made, kDefault); }
  const Json& entry(const std::string& key) { return state_["kernel_opt_task_attempts"][key]; }
  const Json& pending() { return state_["pending_kernel_integrations"]; }
  Json state_ = Json::object();
};
using Spec_6_6 = Ledger;

TEST_F(Spec_6_6, KeyIsTheGroupElseIdAndSource) {
  EXPECT_EQ(record(result("k1", "KEEP")).task_key,
            R"({"kernel_id":"k1","kind":"legacy-kernel","source_file":"k1.loom","version":1})");
  EXPECT_EQ(record(grouped(result("k2", "KEEP"), "G", {"k2"})).task_key, "G");
}

TEST_F(Spec_6_6, EntryTellsOfTheLastAttempt) {
  Json made = grouped(result("k1", "REVERT"), "G", {"k1", "k2"});
  made["identity_route"] = "native";
  record(made);
  record(made);
  const Json& found = entry("G");
  EXPECT_EQ(found["attempts"], 2);
  EXPECT_EQ(found["attempts_per_source"], (Json{{"k1.loom", 2}}));
  EXPECT_EQ(found["last_decision"], "REVERT");
  EXPECT_EQ(found["last_status"], "ok");
  EXPECT_EQ(found["last_micro_speedup"], 1.5);
  EXPECT_EQ(found["last_artifact_path"], "best.loom");
  EXPECT_EQ(found["last_source_file"], "k1.loom");
  EXPECT_EQ(found["last_gpu_pct"], 20.0);
  EXPECT_EQ(found["last_backend"], "forge");
  EXPECT_EQ(found["kernel_id"], "k1");
  EXPECT_EQ(found["current_kernel_id"], "k1");
  EXPECT_EQ(found["stable_task_key"], "G");
  EXPECT_EQ(found["identity_route"], "native");
  EXPECT_EQ(found["history"].size(), 2U);
}

TEST_F(Spec_6_6, EntryHasTheFieldsOfTheDocument) {
  Json made = grouped(result("k1", "KEEP"), "G", {"k1"});
  made["operator_identity"] = {{"version", 2}};
  made["legacy_task_group_keys"] = Json::array();
  record(made);
  for (const char* field : {"attempts",
                            "attempts_per_source",
                            "partial_count",
                            "failure_count",
                            "last_decision",
                            "last_status",
                            "last_micro_speedup",
                            "last_artifact_path",
                            "last_artifact_bundle",
                            "last_snapshot_dir",
                            "last_deploy_patch_path",
                            "last_deploy_repo_root",
                            "last_source_file",
                            "last_gpu_pct",
                            "last_backend",
                            "last_correctness_passed",
                            "last_correctness_source",
                            "last_integration_validation_status",
                            "last_framework_applyback",
                            "last_ts",
                            "kernel_id",
                            "current_kernel_id",
                            "stable_task_key",
                            "operator_identity",
                            "legacy_task_group_keys",
                            "task_group_key",
                            "task_group_kernel_ids",
                            "integration_status",
                            "history"}) {
    EXPECT_TRUE(entry("G").contains(field)) << field;
  }
}

TEST_F(Spec_6_6, QueuedRecordHasTheFieldsOfTheDocument) {
  const Json queued = pending()[record(result("k1", "KEEP")).integration_id];
  for (const char* field : {"integration_id",
                            "task_key",
                            "task_group_key",
                            "identity_route",
                            "legacy_task_group_keys",
                            "kernel_id",
                            "source_file",
                            "artifact_path",
                            "artifact_bundle",
                            "snapshot_dir",
                            "deploy_patch_path",
                            "deploy_repo_root",
                            "micro_speedup",
                            "optimization_decision",
                            "trace_gpu_pct",
                            "created_at",
                            "status",
                            "correctness_source",
                            "artifact_kind",
                            "integration_validation_status",
                            "framework_applyback"}) {
    EXPECT_TRUE(queued.contains(field)) << field;
  }
}

TEST_F(Spec_6_6, HistoryHoldsTheLastTen) {
  for (int i = 0; i < 13; ++i) record(result("k1", "NEEDS_REVIEW"));
  const Json& history = entry(key_of("k1"))["history"];
  ASSERT_EQ(history.size(), 10U);
  EXPECT_EQ(history[0]["attempt"], 4);
  EXPECT_EQ(history[9]["attempt"], 13);
}

TEST_F(Spec_6_6, RevertRejects) {
  EXPECT_EQ(record(result("k1", "REVERT")).rejected_reason, "revert_decision");
  EXPECT_EQ(state_["rejected_kernel_ids"], Json{"k1"});
  record(result("k1", "REVERT"));
  EXPECT_EQ(state_["rejected_kernel_ids"], Json{"k1"}) << "once";
}

// Section 14: "micro unmeasured: PARTIAL, selected again; second one -> rejected".
TEST_F(Spec_6_6, SecondPartialRejects) {
  const Json candidates = {{"hot_kernels", {row("k1", 20)}}};
  record(result("k1", "PARTIAL"));
  EXPECT_EQ(select_candidates(candidates, state_, kDefault).ids(), std::vector<std::string>{"k1"});
  EXPECT_EQ(record(result("k1", "PARTIAL")).rejected_reason, "max_partial_attempts_2_without_keep");
  const auto selection = select_candidates(candidates, state_, kDefault);
  EXPECT_TRUE(selection.selected.empty());
  EXPECT_EQ(selection.skipped.at(0).text, "rejected");
}

TEST_F(Spec_6_6, FailuresRejectAtTheirCap) {
  record(failed("k1", 4));
  EXPECT_EQ(record(failed("k1", 4)).rejected_reason, "max_failures_2_without_keep");
  for (int i = 0; i < 3; ++i) EXPECT_EQ(record(failed("k2", 50)).rejected_reason, "") << i;
  EXPECT_EQ(record(failed("k2", 50)).rejected_reason, "max_failures_4_without_keep");
}

TEST_F(Spec_6_6, EveryClassOfTheMachineryIsAnInfrastructureFailure) {
  for (const char* error_class : {"subtask_exception", "handler_exception", "subprocess_timeout",
                                  "kernel_agent_root_missing", "missing_integration_inputs"}) {
    Json made = result("k1", "");
    made["error_class"] = error_class;
    state_ = Json::object();
    record(made);
    EXPECT_EQ(entry(key_of("k1"))["failure_count"], 1) << error_class;
  }
  for (const char* status : {"failed", "error", "timeout"}) {
    Json made = result("k1", "");
    made["status"] = status;
    state_ = Json::object();
    record(made);
    EXPECT_EQ(entry(key_of("k1"))["failure_count"], 1) << status;
  }
  Json judged = result("k1", "NEEDS_REVIEW");
  judged["status"] = "failed";
  state_ = Json::object();
  record(judged);
  EXPECT_EQ(entry(key_of("k1"))["failure_count"], 0);
}

TEST_F(Spec_6_6, KeepZeroesTheCounts) {
  record(result("k1", "PARTIAL"));
  record(failed("k1"));
  record(result("k1", "KEEP"));
  EXPECT_EQ(entry(key_of("k1"))["partial_count"], 0);
  EXPECT_EQ(entry(key_of("k1"))["failure_count"], 0);
}

TEST_F(Spec_6_6, KeepIsQueuedUnderAnIdOfItsContent) {
  const Recorded kept = record(grouped(result("k1", "KEEP"), "G", {"k1"}));
  const std::string plain =
      R"({"artifact_bundle":{"patch_path":"p","type":"patch_snapshot"},"artifact_path":"best.loom",)"
      R"("source_file":"k1.loom","task_key":"G"})";
  EXPECT_EQ(kept.integration_id, "kernel-integration:" + loom::sha256_hex(plain));
  const Json& record_made = pending()[kept.integration_id];
  EXPECT_EQ(record_made["status"], "pending");
  EXPECT_EQ(record_made["optimization_decision"], "KEEP");
  EXPECT_EQ(record_made["artifact_kind"], "patch_snapshot");
  EXPECT_EQ(record_made["trace_gpu_pct"], 20.0);
  EXPECT_EQ(record_made["task_group_key"], "G");
}

TEST_F(Spec_6_6, NothingButAKeepIsQueued) {
  for (const char* decision : {"REVERT", "PARTIAL", "NEEDS_REVIEW"}) {
    record(result("k1", decision));
  }
  record(failed("k1"));
  EXPECT_TRUE(!state_.contains("pending_kernel_integrations") || pending().empty());
}

TEST_F(Spec_6_6, ReviewIsNeitherRetriedNorRejected) {
  record(result("k1", "NEEDS_REVIEW"));
  EXPECT_FALSE(state_.contains("rejected_kernel_ids"));
  const auto selection = select_candidates({{"hot_kernels", {row("k1", 20)}}}, state_, kDefault);
  EXPECT_EQ(selection.skipped.at(0).detail, "waiting_for_review");
}

TEST_F(Spec_6_6, VendorPlaybookIsNeverQueued) {
  Json made = result("k1", "KEEP");
  made["vendor_playbook_id"] = "v";
  record(made);
  EXPECT_FALSE(state_.contains("pending_kernel_integrations"));
  EXPECT_EQ(entry(key_of("k1"))["vendor_playbook_deploy_blocked"], true);
}

// Section 14: "micro 1.09, correct, valid: REVERT below_threshold, listed as a small positive".
TEST_F(Spec_6_6, BelowThresholdIsListedAsASmallPositive) {
  Json made = result("k1", "REVERT");
  made["proposal"]["reasons"] = {"below_threshold"};
  const Recorded recorded = record(made);
  const Json& listed = state_["small_positives"][recorded.integration_id];
  EXPECT_EQ(listed["kernel_id"], "k1");
  EXPECT_EQ(listed["measured_end_to_end"], false);
  EXPECT_FALSE(state_.contains("pending_kernel_integrations"));
}

TEST_F(Spec_6_6, LegacyAliasMovesToTheNewKey) {
  record(result("k1", "PARTIAL"));
  Json made = grouped(result("k1", "PARTIAL"), "G", {"k1"});
  made["legacy_task_group_keys"] = {"older"};
  state_["kernel_opt_task_attempts"]["older"] = {{"attempts", 5}};
  record(made);
  EXPECT_FALSE(state_["kernel_opt_task_attempts"].contains("older"));
  EXPECT_FALSE(state_["kernel_opt_task_attempts"].contains(key_of("k1")));
  EXPECT_EQ(entry("G")["attempts"], 6);
}

TEST_F(Spec_6_6, IdUnderAnotherGroupStartsFresh) {
  record(grouped(result("k1", "REVERT"), "G", {"k1", "k2"}));
  record(grouped(result("k2", "REVERT"), "G", {"k1", "k2"}));
  record(grouped(result("k9", "REVERT"), "F", {"k9"}));
  ASSERT_EQ(state_["rejected_kernel_ids"], (Json{"k1", "k2", "k9"}));
  record(grouped(result("k1", "PARTIAL"), "H", {"k1", "k2"}));
  EXPECT_EQ(entry("H")["attempts"], 1);
  EXPECT_EQ(state_["rejected_kernel_ids"], Json{"k9"});
  EXPECT_EQ(entry("G")["attempts"], 2) << "the other task keeps what is known of it";
}

TEST_F(Spec_6_6, AnotherSourceStartsTheCountsAnew) {
  record(result("k1", "PARTIAL"));
  Json made = grouped(result("k1", "PARTIAL"), "G", {"k1"});
  made["source_file"] = "b.loom";
  record(grouped(result("k1", "PARTIAL"), "G", {"k1"}));
  record(made);
  EXPECT_EQ(entry("G")["partial_count"], 1);
  EXPECT_EQ(entry("G")["attempts_per_source"]["b.loom"], 1);
}

TEST_F(Spec_6_6, LastResultOutlivesOthersWhileItsKeepWaits) {
  const Recorded kept = record(result("k1", "KEEP"));
  record(result("k2", "REVERT"));
  EXPECT_EQ(state_["last_kernel_opt"]["kernel_id"], "k1");
  state_["pending_kernel_integrations"][kept.integration_id]["status"] = "integrated";
  record(result("k2", "REVERT"));
  EXPECT_EQ(state_["last_kernel_opt"]["kernel_id"], "k2");
}

TEST_F(Spec_6_6, WhatIsNoAttemptLeavesTheLedgerAsItIs) {
  Json dry = result("k1", "NEEDS_REVIEW");
  dry["dry_run"] = true;
  Json missing = failed("k1");
  missing["error_class"] = "not_available";
  Json interrupted = failed("k1");
  interrupted["error_class"] = "interrupted";
  Json batch = result("k1", "KEEP");
  batch["batch_mode"] = true;
  for (const Json& made : {dry, missing, interrupted, batch}) {
    EXPECT_FALSE(record(made).counted);
    EXPECT_EQ(state_, Json::object());
  }
}

TEST_F(Spec_6_6, DispatchSkipIsRemembered) {
  record({{"status", "skipped"},
          {"reason", "no_eligible_kernels"},
          {"message", "m"},
          {"kernels_considered", 3}});
  EXPECT_EQ(state_["last_kernel_opt_dispatch_skip"]["reason"], "no_eligible_kernels");
  EXPECT_EQ(state_["last_kernel_opt_dispatch_skip"]["kernels_considered"], 3);
  EXPECT_FALSE(state_.contains("kernel_opt_task_attempts"));
}

TEST_F(Spec_6_6, OrdinalOfTheNextAttemptFollowsTheTask) {
  Json made = row("k1", 20);
  EXPECT_EQ(attempts_of(state_, made), 0);
  record(result("k1", "PARTIAL"));
  EXPECT_EQ(attempts_of(state_, made), 1);
  made["task_group"] = {{"task_group_key", "G"}};
  EXPECT_EQ(attempts_of(state_, made), 1) << "found under its legacy key";
}

// Ten thousand attempts on as many tasks: what is read for one does not grow with their number.
TEST_F(Spec_6_6, RecordingReadsNoMoreInALargeLedger) {
  static constexpr const char* kDecisions[] = {"KEEP", "REVERT", "PARTIAL", "NEEDS_REVIEW", ""};
  size_t first = 0;
  size_t last = 0;
  for (size_t i = 0; i < 10000; ++i) {
    const std::string kernel = "k" + std::to_string(i);
    const Json made =
        kDecisions[i % 5][0] == 0 ? failed(kernel) : result(kernel, kDecisions[i % 5]);
    const size_t read = record(grouped(made, "G" + std::to_string(i), {kernel})).looked_at;
    size_t& most = i < 100 ? first : last;
    most = std::max(most, read);
  }
  EXPECT_EQ(state_["kernel_opt_task_attempts"].size(), 10000U);
  EXPECT_EQ(pending().size(), 2000U);
  EXPECT_LE(last, first);
}

// As many attempts of a few tasks leave no more than a few do.
TEST_F(Spec_6_6, TenThousandAttemptsOfFewTasksLeaveASmallState) {
  const auto attempt = [&](size_t times) {
    for (size_t i = 0; i < times; ++i) {
      const std::string kernel = "k" + std::to_string(i % 8);
      record(i % 3 == 0 ? failed(kernel) : result(kernel, i % 3 == 1 ? "PARTIAL" : "NEEDS_REVIEW"));
    }
    return state_.dump().size();
  };
  const size_t few = attempt(200);
  EXPECT_LT(attempt(9800), few + few / 10);
}

}  // namespace
}  // namespace hyperloom::optimize
