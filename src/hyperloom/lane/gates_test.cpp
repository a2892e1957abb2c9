#include "hyperloom/lane/gates.h"

#include <gtest/gtest.h>

#include "hyperloom/lane/engines.h"

namespace hyperloom::lane {
namespace {

Environment with(std::map<std::string, std::string> values) {
  return Environment(std::move(values));
}

Json collective_row(double share) {
  return {{"kernel_id", "k001"},
          {"gpu_pct", share},
          {"source_file", "a.cu"},
          {"source_function", "reduce"},
          {"reusable_native_kernel", true},
          {"kernel_contract", {{"kind", "collective"}, {"collective_op", "all_reduce"}}}};
}

Json ranks_state(int ranks) {
  return {{"tp", ranks}, {"last_trace_analyze", {{"analysis_key", "key"}}}};
}

TEST(Spec_4_1, ForgeIsSelectedByExactlyThatWord) {
  EXPECT_TRUE(forge_selected(with({{"KERNEL_OPT_BACKEND_ORDER", "forge"}})));
  for (const char* other : {"Forge", " forge", "forge ", "forge,geak", "", "geak"}) {
    EXPECT_FALSE(forge_selected(with({{"KERNEL_OPT_BACKEND_ORDER", other}}))) << other;
  }
  EXPECT_FALSE(forge_selected(with({})));
}

TEST(Spec_4_1, CollectiveOnlyReadsTruthyWords) {
  for (const char* yes : {"1", "true", "YES", "on"}) {
    EXPECT_TRUE(collective_only(with({{"HYPERLOOM_COLLECTIVE_ONLY", yes}}))) << yes;
  }
  for (const char* no : {"0", "false", "", "off", "perhaps"}) {
    EXPECT_FALSE(collective_only(with({{"HYPERLOOM_COLLECTIVE_ONLY", no}}))) << no;
  }
}

TEST(Spec_4_2, GemmIsDueUntilItsStatusIsTerminal) {
  const Environment none({});
  EXPECT_TRUE(gemm_gate({{"framework", "loom"}}, none).open);
  EXPECT_TRUE(
      gemm_gate({{"framework", "loom"}, {"last_gemm_tuning", {{"status", "failed"}}}}, none).open);
  EXPECT_EQ(gemm_gate({{"framework", "loom"}, {"last_gemm_tuning", {{"status", "complete"}}}}, none)
                .reason,
            "settled");
  EXPECT_TRUE(
      gemm_gate({{"framework", "loom"},
                 {"last_gemm_tuning", {{"status", "complete"}, {"bf16_fallback_pending", true}}}},
                none)
          .open);
  EXPECT_EQ(gemm_gate({}, with({{"INFERENCE_OPTIMIZER_SKIP_GEMM_TUNING", "1"}})).reason,
            "skip_switch");
  EXPECT_EQ(gemm_gate({{"framework", "script"}}, none).reason, "framework");
}

// Section 14: the gate of fusion.
TEST(Spec_4_2, FusionIsOfferedToNativeProgramsAndToKnownServers) {
  const auto gate = [](const char* kind, const char* framework) {
    return fusion_gate(
        {{"workload_kind", kind}, {"framework", framework}, {"last_profile_trace", "t"}},
        Environment({}));
  };
  EXPECT_TRUE(gate("native", "loom").open);
  EXPECT_EQ(gate("external", "loom").reason, "framework");
  EXPECT_TRUE(gate("external", "vllm-aiter").open);
}

TEST(Spec_4_2, FusionNeedsAFrameworkATraceAndNoSettledResult) {
  const Environment none({});
  Json state = {{"framework", "loom"}, {"last_profile_trace", "trace.json"}};
  EXPECT_TRUE(fusion_gate(state, none).open);
  EXPECT_EQ(fusion_gate(state, with({{"HYPERLOOM_SKIP_FUSION", "on"}})).reason, "skip_switch");
  for (const char* status : {"ok", "complete", "kept"}) {
    state["last_fusion"] = {{"status", status}};
    EXPECT_EQ(fusion_gate(state, none).reason, "settled") << status;
  }
  state["last_fusion"] = {{"status", "failed"}};
  EXPECT_TRUE(fusion_gate(state, none).open);
  state["last_profile_trace"] = "";
  EXPECT_EQ(fusion_gate(state, none).reason, "no_profile_trace");
  state.erase("last_profile_trace");
  EXPECT_EQ(fusion_gate(state, none).reason, "no_profile_trace");
  EXPECT_EQ(fusion_gate({{"framework", "xdit"}, {"last_profile_trace", "t"}}, none).reason,
            "framework");
}

TEST(Spec_4_2, CollectiveNeedsMoreThanOneRank) {
  const Environment none({});
  EXPECT_EQ(collective_gate(ranks_state(1), {}, none)->reason, "single_rank");
  EXPECT_EQ(collective_gate(Json::object(), {}, none)->reason, "single_rank");
  EXPECT_EQ(collective_gate({{"tp", true}}, {}, none).error().error_class, "invalid_tp");
  EXPECT_EQ(collective_gate({{"tp", "2"}}, {}, none).error().error_class, "invalid_tp");
  EXPECT_EQ(collective_gate(ranks_state(2), {}, with({{"HYPERLOOM_SKIP_COLLECTIVE", "1"}}))->reason,
            "skip_switch");
  EXPECT_EQ(collective_gate({{"tp", 2}}, {}, none)->reason, "no_trace_analysis");
}

TEST(Spec_4_2, CommunicationShareComesFromTheSnapshotElseTheHottestCandidate) {
  const Environment none({});
  Json state = ranks_state(2);
  EXPECT_EQ(collective_gate(state, {}, none)->reason, "comm_share_unknown");
  Json candidates = {{"hot_kernels", {collective_row(2.9)}}};
  EXPECT_EQ(collective_gate(state, candidates, none)->reason, "comm_share_below_floor");
  candidates["hot_kernels"].push_back(collective_row(3.0));
  EXPECT_TRUE(collective_gate(state, candidates, none)->open);
  candidates["hot_kernels"][1]["source_file"] = "";
  EXPECT_EQ(collective_gate(state, candidates, none)->reason, "comm_share_below_floor");
  state["roofline_snapshots"] = {{{"comm_pct", 1.0}}};
  EXPECT_TRUE(collective_gate(state, candidates, none)->open);
  state["roofline_snapshots"] = {{{"comm_pct", 0.99}}};
  EXPECT_EQ(collective_gate(state, candidates, none)->reason, "comm_share_below_floor");
}

TEST(Spec_4_2, ASettledCampaignBlocksItsOwnAnalysisOnly) {
  const Environment none({});
  Json state = ranks_state(2);
  state["roofline_snapshots"] = {{{"comm_pct", 5.0}}};
  for (const char* status : {"ok", "complete", "kept", "skipped"}) {
    state["last_collective"] = {{"status", status}, {"analysis_key", "key"}};
    EXPECT_EQ(collective_gate(state, {}, none)->reason, "settled") << status;
    state["last_collective"]["analysis_key"] = "other";
    EXPECT_TRUE(collective_gate(state, {}, none)->open) << status;
    state["collective_attempts"] = {{{"status", status}, {"analysis_key", "key"}}};
    EXPECT_EQ(collective_gate(state, {}, none)->reason, "settled") << status;
    state.erase("collective_attempts");
  }
  state["last_collective"] = {{"status", "failed"}, {"analysis_key", "key"}};
  EXPECT_TRUE(collective_gate(state, {}, none)->open);
}

TEST(Spec_3, AKindWithoutAnEngineSaysWhatIsMissing) {
  for (const MissingEngine& engine : missing_engines()) {
    const Json answer = not_available(engine.kind);
    EXPECT_EQ(answer["status"], "failed");
    EXPECT_EQ(answer["error_class"], "not_available");
    EXPECT_NE(text_of(answer, "error").find(engine.what), std::string::npos);
  }
}

}  // namespace
}  // namespace hyperloom::lane
