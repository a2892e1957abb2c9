#include "hyperloom/optimize/summary.h"

#include <gtest/gtest.h>

#include "hyperloom/optimize/ledger.h"
#include "hyperloom/optimize/testing.h"

namespace hyperloom::optimize {
namespace {

Json result(const std::string& kernel, const std::string& decision, const std::string& reason) {
  Json made = {{"status", decision.empty() ? "failed" : "ok"},
               {"kernel_id", kernel},
               {"source_file", kernel + ".loom"},
               {"verification", {{"micro_speedup", 1.5}, {"best_artifact_path", kernel}}}};
  if (decision.empty()) {
    made["error_class"] = reason;
  } else {
    made["proposal"] = {{"decision", decision}, {"reasons", {reason}}};
  }
  return made;
}

TEST(Spec_6_7, EveryKernelHasOneCategoryAndItsReason) {
  Json state = Json::object();
  const Recorded kept = record_kernel_opt(state, result("k1", "KEEP", "e2e"), kDefault);
  record_kernel_opt(state, result("k2", "KEEP", "e2e"), kDefault);
  record_kernel_opt(state, result("k3", "REVERT", "correctness_failed"), kDefault);
  record_kernel_opt(state, result("k4", "", "ladder_timeout"), kDefault);
  state["pending_kernel_integrations"][kept.integration_id]["status"] = "integrated";
  const Json candidates = {{"hot_kernels",
                            {row("k1", 30), row("k2", 20), row("k3", 15), row("k4", 12),
                             row("k5", 10), row("k6", 1), row("k7", 9)}}};
  const Json summary = session_summary(candidates, state, kDefault, {"k7"});
  const auto of = [&](size_t i, const char* field) { return summary["by_kernel"][i][field]; };
  EXPECT_EQ(of(0, "category"), "INTEGRATED");
  EXPECT_EQ(of(1, "category"), "KEEP_PENDING");
  EXPECT_EQ(of(2, "category"), "ATTEMPTED_REJECTED");
  EXPECT_EQ(of(2, "reason"), "revert_decision");
  EXPECT_EQ(of(2, "error_class"), "correctness_failed");
  EXPECT_EQ(of(3, "category"), "ATTEMPTED_REJECTED");
  EXPECT_EQ(of(3, "error_class"), "timeout");
  EXPECT_EQ(of(4, "category"), "UNATTEMPTED");
  EXPECT_EQ(of(4, "reason"), "never_dispatched");
  EXPECT_EQ(of(5, "category"), "IN_FLIGHT");
  EXPECT_EQ(of(6, "reason"), "below_min_gpu_pct=5");
  EXPECT_EQ(summary["totals"], (Json{{"INTEGRATED", 1},
                                     {"KEEP_PENDING", 1},
                                     {"ATTEMPTED_REJECTED", 2},
                                     {"IN_FLIGHT", 1},
                                     {"UNATTEMPTED", 2}}));
  EXPECT_EQ(summary["unattempted_reason_breakdown"],
            (Json{{"below_min_gpu_pct", 1}, {"never_dispatched", 1}}));
  EXPECT_EQ(summary["failure_reason_breakdown"], (Json{{"correctness_failed", 1}, {"timeout", 1}}));
  EXPECT_EQ(summary["schema_version"], 1);
  for (const char* key :
       {"rejection_breakdown", "dispatch_skip_reason", "field_glossary", "top_takeaways"}) {
    EXPECT_TRUE(summary.contains(key)) << key;
  }
  EXPECT_EQ(summary["top_takeaways"][0], "k1 (30.0 %): INTEGRATED");
}

TEST(Spec_6_7, ErrorClassesAreSix) {
  const std::vector<std::pair<const char*, const char*>> cases = {
      {"workload_hung", "timeout"},         {"build_failed", "compile_failed"},
      {"backend_exception", "agent_error"}, {"missing_source_path", "preprocess_failed"},
      {"workload_crashed", "unknown"},      {"correctness_failed", "correctness_failed"}};
  for (const auto& [error_class, expected] : cases) {
    Json state = Json::object();
    const bool judged = std::string(error_class) == "correctness_failed";
    record_kernel_opt(state, result("k1", judged ? "REVERT" : "", error_class), kDefault);
    const Json summary = session_summary({{"hot_kernels", {row("k1", 30)}}}, state, kDefault, {});
    EXPECT_EQ(summary["by_kernel"][0]["error_class"], expected) << error_class;
    EXPECT_EQ(summary["by_kernel"][0]["outcome"], "fail") << error_class;
  }
}

TEST(Spec_6_7, WithoutAnAnalysisThereIsNoSummary) {
  EXPECT_TRUE(session_summary(session::Layout{}, Json::object(), kDefault).is_null());
}

}  // namespace
}  // namespace hyperloom::optimize
