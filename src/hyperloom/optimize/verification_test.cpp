#include "hyperloom/optimize/verification.h"

#include <gtest/gtest.h>

namespace hyperloom::optimize {
namespace {

// Correct, valid and fast enough.
Verification good(double speedup = 1.5) {
  Verification made;
  made.any_usable_attempt = true;
  made.compile_passed = true;
  made.correctness_passed = true;
  made.correctness_source = "forge_rewrite_reference";
  made.micro_speedup = speedup;
  made.micro_speedup_source = "forge_mean_case_result";
  made.artifact_valid = true;
  made.artifact_source = "source_file";
  return made;
}

std::string decide(const Verification& verification) {
  const Proposal proposal = propose(verification);
  return proposal.decision + " " + proposal.reasons.at(0);
}

TEST(Spec_6_4, NoUsableAttemptIsReverted) {
  EXPECT_EQ(decide(Verification{}), "REVERT no_usable_attempt");
}

TEST(Spec_6_4, UnmeasuredSpeedupIsPartial) {
  Verification made = good();
  made.micro_speedup_source = "default_unmeasured";
  made.correctness_passed = false;
  EXPECT_EQ(decide(made), "PARTIAL speedup_not_measured") << "row 2 stands before row 4";
}

TEST(Spec_6_4, NoSpeedupIsRevertedBeforeCorrectnessIsAsked) {
  Verification made = good(1.0);
  made.correctness_passed.reset();
  EXPECT_EQ(decide(made), "REVERT no_speedup");
}

TEST(Spec_6_4, FailedChecksAreReverted) {
  Verification wrong = good();
  wrong.correctness_passed = false;
  wrong.artifact_valid = false;
  EXPECT_EQ(decide(wrong), "REVERT correctness_failed");
  Verification inaccurate = good();
  inaccurate.accuracy_passed = false;
  EXPECT_EQ(decide(inaccurate), "REVERT accuracy_failed");
  Verification slower = good();
  slower.e2e_gain_pct = -0.1;
  EXPECT_EQ(decide(slower), "REVERT e2e_loss");
  slower.e2e_gain_pct = 0;
  EXPECT_EQ(decide(slower), "KEEP e2e_deferred_to_integrate");
}

TEST(Spec_6_4, MissingCorrectnessIsPartial) {
  Verification made = good();
  made.correctness_passed.reset();
  made.artifact_valid = false;
  EXPECT_EQ(decide(made), "PARTIAL correctness_missing");
}

TEST(Spec_6_4, InvalidArtifactNeedsReview) {
  Verification made = good(1.05);
  made.artifact_valid = false;
  EXPECT_EQ(decide(made), "NEEDS_REVIEW artifact_invalid");
}

// Section 14: "micro 1.09, correct, valid" and "micro 1.10, correct, valid".
TEST(Spec_6_4, KeepBeginsAtOnePointOne) {
  EXPECT_EQ(decide(good(1.09)), "REVERT below_threshold");
  EXPECT_EQ(decide(good(1.10)), "KEEP e2e_deferred_to_integrate");
}

TEST(Spec_6_5_Proposal, DryRunNeedsReview) {
  Verification made = good();
  made.dry_run = true;
  made.micro_speedup = 1.05;
  made.micro_speedup_source = "dry_run_placeholder";
  EXPECT_EQ(decide(made), "NEEDS_REVIEW dry_run");
}

TEST(Spec_6_3_Record, RecordIsCompleteOnlyWithCorrectnessAndEndToEnd) {
  Verification made = good();
  made.best_artifact_bundle = {{"snapshot_dir", "s"}, {"patch_path", "p"}, {"repo_root", "r"}};
  Json json = made.to_json();
  EXPECT_EQ(json["verification_status"], "deferred");
  EXPECT_EQ(json["accuracy_passed"], Json());
  EXPECT_EQ(json["deploy_snapshot_dir"], "s");
  EXPECT_EQ(json["deploy_patch_path"], "p");
  EXPECT_EQ(json["deploy_repo_root"], "r");
  made.e2e_gain_pct = 3;
  EXPECT_EQ(made.to_json()["verification_status"], "complete");
}

TEST(Spec_6_3_Record, RecordHasItsFieldsAndSaysWhatIsUnknown) {
  const Json json = Verification{}.to_json();
  for (const char* field :
       {"compile_passed", "correctness_passed", "e2e_gain_pct", "accuracy_passed",
        "verification_status", "benchmark_available", "integration_validation_status",
        "framework_applyback", "best_attempt_id", "best_backend", "best_artifact_path",
        "artifact_valid", "artifact_error", "best_artifact_bundle", "deploy_snapshot_dir",
        "deploy_patch_path", "deploy_repo_root"}) {
    EXPECT_TRUE(json.contains(field)) << field;
  }
  EXPECT_EQ(json["micro_speedup"], 1.0);
  EXPECT_EQ(json["micro_speedup_source"], "default_unmeasured");
  EXPECT_EQ(json["correctness_source"], "missing");
  EXPECT_EQ(json["artifact_source"], "missing");
}

}  // namespace
}  // namespace hyperloom::optimize
