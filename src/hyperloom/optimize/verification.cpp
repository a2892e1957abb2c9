#include "hyperloom/optimize/verification.h"

namespace hyperloom::optimize {
namespace {

template <class T>
Json known(const std::optional<T>& value) {
  return value ? Json(*value) : Json();
}

struct Row {
  bool (*holds)(const Verification&);
  const char* decision;
  const char* reason;
};

constexpr Row kTable[] = {
    {[](const Verification& v) { return v.dry_run; }, "NEEDS_REVIEW", "dry_run"},
    {[](const Verification& v) { return !v.any_usable_attempt; }, "REVERT", "no_usable_attempt"},
    {[](const Verification& v) { return !v.measured(); }, "PARTIAL", "speedup_not_measured"},
    {[](const Verification& v) { return v.micro_speedup <= 1.0; }, "REVERT", "no_speedup"},
    {[](const Verification& v) { return v.correctness_passed == false; }, "REVERT",
     "correctness_failed"},
    {[](const Verification& v) { return v.accuracy_passed == false; }, "REVERT", "accuracy_failed"},
    {[](const Verification& v) { return v.e2e_gain_pct && *v.e2e_gain_pct < 0; }, "REVERT",
     "e2e_loss"},
    {[](const Verification& v) { return !v.correctness_passed; }, "PARTIAL", "correctness_missing"},
    {[](const Verification& v) { return !v.artifact_valid; }, "NEEDS_REVIEW", "artifact_invalid"},
    {[](const Verification& v) { return v.micro_speedup < kKeepSpeedup; }, "REVERT",
     "below_threshold"},
    {[](const Verification&) { return true; }, "KEEP", "e2e_deferred_to_integrate"},
};

}  // namespace

Json Verification::to_json() const {
  const bool complete = correctness_passed && e2e_gain_pct;
  const Json& bundle = best_artifact_bundle;
  return {{"compile_passed", known(compile_passed)},
          {"correctness_passed", known(correctness_passed)},
          {"correctness_source", correctness_source},
          {"benchmark_available", benchmark_available},
          {"micro_speedup", micro_speedup},
          {"micro_speedup_source", micro_speedup_source},
          {"e2e_gain_pct", known(e2e_gain_pct)},
          {"accuracy_passed", known(accuracy_passed)},
          {"verification_status", complete ? "complete" : "deferred"},
          {"integration_validation_status", complete ? "complete" : "deferred"},
          {"framework_applyback", false},
          {"best_attempt_id", best_attempt_id},
          {"best_backend", best_backend},
          {"best_artifact_path", best_artifact_path},
          {"artifact_valid", artifact_valid},
          {"artifact_source", artifact_source},
          {"artifact_error", artifact_error},
          {"best_artifact_bundle", bundle},
          {"extra_envs", extra_envs},
          {"kernel_speedups", kernel_speedups},
          {"deploy_snapshot_dir", text_of(bundle, "snapshot_dir")},
          {"deploy_patch_path", text_of(bundle, "patch_path")},
          {"deploy_repo_root", text_of(bundle, "repo_root")}};
}

Json Proposal::to_json() const { return {{"decision", decision}, {"reasons", reasons}}; }

Proposal propose(const Verification& verification) {
  for (const Row& row : kTable) {
    if (row.holds(verification)) return {row.decision, {row.reason}};
  }
  return {};
}

}  // namespace hyperloom::optimize
