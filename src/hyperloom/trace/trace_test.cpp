#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <utility>

#include "hyperloom/core/testing.h"
#include "hyperloom/trace/analyze.h"
#include "hyperloom/trace/candidates.h"
#include "hyperloom/trace/categories.h"
#include "hyperloom/trace/chrome.h"
#include "hyperloom/trace/input.h"

namespace hyperloom::trace {
namespace {

using workload::Dispatch;

Dispatch dispatch(const std::string& kernel, uint64_t begin, uint64_t end, uint64_t bytes = 0) {
  Dispatch one;
  one.kernel = kernel;
  one.begin_ns = begin;
  one.end_ns = end;
  one.workgroups = 4;
  one.bytes = bytes;
  one.source_file = "model.loom";
  one.source_line = 7;
  return one;
}

Surroundings surroundings() {
  Surroundings around;
  around.tree = "/tree";
  around.files = {"model.loom"};
  around.model_name = "model";
  around.target_platform = "cpu:0";
  return around;
}

TEST(Spec_5_2, AWrittenTraceReadsBackAsItWas) {
  const std::vector<Dispatch> written = {dispatch("a", 100, 1600, 64), dispatch("b", 1600, 2001)};
  const auto read = parse_trace(chrome_trace("p", written).dump(), "t.json");
  ASSERT_TRUE(read.has_value()) << read.error().message;
  ASSERT_EQ(read->size(), 2u);
  EXPECT_EQ((*read)[0].kernel, "a");
  EXPECT_EQ((*read)[0].begin_ns, 100u);
  EXPECT_EQ((*read)[0].end_ns, 1600u);
  EXPECT_EQ((*read)[0].bytes, 64u);
  EXPECT_EQ((*read)[0].source_line, 7u);
  EXPECT_EQ((*read)[1].end_ns, 2001u);
}

TEST(Spec_5_2, AForeignTraceIsNotAvailableAndABadOneIsNamed) {
  EXPECT_EQ(parse_trace(R"({"traceEvents":[]})", "t").error().error_class, "not_available");
  EXPECT_EQ(parse_trace("{", "t").error().error_class, "invalid_trace");
  EXPECT_EQ(parse_trace("[]", "t").error().error_class, "invalid_trace");
  Json trace = chrome_trace("p", {dispatch("a", 0, 1)});
  for (const auto& [field, bad] : std::vector<std::pair<std::string, Json>>{
           {"ts", -1}, {"dur", "x"}, {"name", ""}, {"tid", -4}, {"dur", 1e300}}) {
    Json broken = trace;
    broken["traceEvents"][0][field] = bad;
    const auto read = parse_trace(broken.dump(), "t.json");
    ASSERT_FALSE(read.has_value()) << field;
    EXPECT_EQ(read.error().message, "t.json: event 0 has no usable '" + field + "'");
  }
}

TEST(Spec_5_3, SharesAreOfTheSumOfKernelTimesAndOfTheWindow) {
  // Two kernels of 3 and 1 us run side by side in a window of 4 us.
  const Json all =
      candidates({dispatch("slow", 0, 3000), dispatch("quick", 3000, 4000)}, surroundings());
  const Json& rows = all["hot_kernels"];
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0]["name"], "slow");
  EXPECT_EQ(rows[0]["kernel_id"], "k001");
  EXPECT_DOUBLE_EQ(rows[0]["gpu_pct"].get<double>(), 75);
  EXPECT_DOUBLE_EQ(rows[0]["e2e_share"].get<double>(), 0.75);
  const Json gap = candidates({dispatch("a", 0, 1000), dispatch("b", 9000, 10000)}, surroundings());
  EXPECT_DOUBLE_EQ(gap["hot_kernels"][0]["gpu_pct"].get<double>(), 50);
  EXPECT_DOUBLE_EQ(gap["hot_kernels"][0]["e2e_share"].get<double>(), 0.1);
}

TEST(Spec_5_3, TheWindowIsBusyWhereAnyKernelRuns) {
  const Json all =
      candidates({dispatch("a", 0, 3000), dispatch("b", 1000, 4000), dispatch("c", 6000, 8000)},
                 surroundings());
  EXPECT_EQ(all["window"], (Json{{"span_us", 8.0}, {"busy_us", 6.0}, {"idle_pct", 25.0}}));
  EXPECT_DOUBLE_EQ(all["hot_kernels"][0]["gpu_pct"].get<double>(), 37.5) << "of 8, not of 6";
  const Json thirds = candidates({dispatch("a", 0, 2), dispatch("b", 2, 3)}, surroundings());
  EXPECT_DOUBLE_EQ(thirds["hot_kernels"][0]["gpu_pct"].get<double>(), 66.667);
}

TEST(Spec_5_3, AHealthGateMarksRowsAndKeepsThem) {
  const Json idle =
      candidates({dispatch("a", 0, 1000), dispatch("a", 99000, 100000)}, surroundings());
  ASSERT_EQ(idle["hot_kernels"].size(), 1u);
  EXPECT_EQ(idle["hot_kernels"][0]["blocked_by"], "high_gpu_idle_pct");
  EXPECT_EQ(idle["trace_health_warnings"][0]["code"], "high_gpu_idle_pct");
  const Json busy = candidates({dispatch("a", 0, 1000)}, surroundings());
  EXPECT_FALSE(busy["hot_kernels"][0].contains("blocked_by"));
}

TEST(Spec_4_8, RowsOfTheWorkloadsTreeAreReusableLoomKernels) {
  Dispatch other = dispatch("other", 0, 10);
  other.source_file = "elsewhere.loom";
  const Json all = candidates({dispatch("mine", 0, 20), other}, surroundings());
  const Json& mine = all["hot_kernels"][0];
  EXPECT_EQ(mine["source_type"], "loom");
  EXPECT_EQ(mine["shape_provenance"], "native_trace");
  EXPECT_EQ(mine["reusable_native_kernel"], true);
  EXPECT_EQ(mine["source_file"], "/tree/model.loom");
  EXPECT_EQ(mine["source_line"], 7);
  EXPECT_EQ(all["reusable_native_kernel_ids"], Json::array({"k001"}));
  EXPECT_EQ(all["hot_kernels"][1]["reusable_native_kernel"], false);
  EXPECT_EQ(all["skipped_kernels"][0]["skip_reason"], "not below the workload's tree");
}

// Fields of the document, and what stands beside them here.
TEST(Spec_5_7, RowsHaveTheFieldsOfTheDocumentAndNoOthers) {
  Surroundings around = surroundings();
  around.device_peaks = {{{"name", "bandwidth"}, {"value", 1e10}},
                         {{"name", "compute_f32"}, {"value", 1e10}}};
  around.cache_bytes = 1000;
  Dispatch one = dispatch("a", 0, 2000, 10000);
  one.operations = 10000;
  one.operation_type = "f32";
  const Json row = candidates({one}, around)["hot_kernels"][0];
  const std::set<std::string> document = {"kernel_id",
                                          "name",
                                          "operation",
                                          "duration_us",
                                          "call_count",
                                          "gpu_pct",
                                          "gpu_pct_basis",
                                          "e2e_share",
                                          "shapes",
                                          "input_shapes",
                                          "shape_provenance",
                                          "shape_dispatchable",
                                          "invocation_cases",
                                          "source_file",
                                          "source_line",
                                          "source_function",
                                          "source_type",
                                          "source_resolution_method",
                                          "kernel_repo",
                                          "kernel_kind",
                                          "reusable_native_kernel",
                                          "runtime_generated_kernel",
                                          "vendor_dispatch_wrapper",
                                          "is_multigpu",
                                          "num_gpus_recommended",
                                          "recommended_backends",
                                          "kernel_category",
                                          "e2e_transferable",
                                          "candidate_source",
                                          "bound_type",
                                          "arithmetic_intensity",
                                          "flops_per_byte",
                                          "efficiency_percent",
                                          "compute_utilization_pct",
                                          "bandwidth_utilization_pct"};
  const std::set<std::string> besides = {"task_group_key", "task_group_id", "identity_route",
                                         "efficiency_uncapped_pct", "roofline_source"};
  for (const std::string& field : document) EXPECT_TRUE(row.contains(field)) << field;
  for (const auto& [field, value] : row.items()) {
    EXPECT_TRUE(document.contains(field) || besides.contains(field)) << field;
  }
  EXPECT_EQ(row["shapes"], Json({"(4)workgroups<br>(10000)u8"}));
  EXPECT_EQ(row["gpu_pct_basis"], "e2e_window");
}

TEST(Spec_5_8, GroupsHaveTheirFieldsAndShapeCases) {
  Dispatch large = dispatch("a", 30, 90);
  large.workgroups = 8;
  const Json all =
      candidates({dispatch("a", 0, 10), large, dispatch("a", 90, 100)}, surroundings());
  ASSERT_EQ(all["task_groups"].size(), 1u);
  const Json& made = all["task_groups"][0];
  EXPECT_EQ(made["task_group_id"], "tg001");
  EXPECT_EQ(made["primary_kernel_id"], "k001");
  EXPECT_EQ(made["kernel_ids"], Json({"k001"}));
  EXPECT_EQ(made["function_name"], "a");
  EXPECT_EQ(made["source_path"], "/tree/model.loom");
  EXPECT_EQ(made["definition_line"], 7);
  EXPECT_EQ(made["aggregate_call_count"], 3);
  EXPECT_DOUBLE_EQ(made["aggregate_duration_us"].get<double>(), 0.08);
  EXPECT_DOUBLE_EQ(made["aggregate_gpu_pct"].get<double>(), 100);
  for (const char* field :
       {"identity_route", "operator_identity", "legacy_task_group_keys", "ast_resolved", "rows"}) {
    EXPECT_TRUE(made.contains(field)) << field;
  }
  ASSERT_EQ(made["shape_cases"].size(), 2u);
  EXPECT_EQ(made["shape_cases"][0]["case_id"], "case_001");
  EXPECT_EQ(made["shape_cases"][0]["count"], 2);
  EXPECT_EQ(made["shape_cases"][0]["selector"], Json({{"WORKGROUPS", 4}}));
  EXPECT_EQ(made["shape_cases"][1]["case_id"], "case_002");
}

TEST(Spec_5_8, TheTaskKeySurvivesARenumbering) {
  const Json first = candidates({dispatch("a", 0, 30), dispatch("b", 30, 40)}, surroundings());
  const Json second = candidates({dispatch("a", 0, 5), dispatch("b", 30, 40)}, surroundings());
  EXPECT_EQ(first["hot_kernels"][0]["name"], "a");
  EXPECT_EQ(second["hot_kernels"][1]["name"], "a");
  EXPECT_EQ(first["hot_kernels"][0]["task_group_key"], second["hot_kernels"][1]["task_group_key"]);
  const Json identity = Json::parse(text_of(first["hot_kernels"][0], "task_group_key"));
  EXPECT_EQ(identity["version"], 2);
  EXPECT_EQ(identity["source_kind"], "native");
  EXPECT_EQ(first["task_groups"][0]["task_group_key"], first["hot_kernels"][0]["task_group_key"]);
}

TEST(Spec_5_10, BandwidthBoundsOnlyWhatLeavesTheCaches) {
  Surroundings around = surroundings();
  around.device_peaks = {{{"name", "bandwidth"}, {"value", 1e10}, {"unit", "B/s"}}};
  around.cache_bytes = 1000;
  // 10,000 bytes in 2 us are 5e9 B/s.
  const Json row = candidates({dispatch("a", 0, 2000, 10000)}, around)["hot_kernels"][0];
  EXPECT_EQ(row["bound_type"], "memory");
  EXPECT_DOUBLE_EQ(row["efficiency_percent"].get<double>(), 50);
  const Json fast = candidates({dispatch("a", 0, 500, 10000)}, around)["hot_kernels"][0];
  EXPECT_DOUBLE_EQ(fast["efficiency_percent"].get<double>(), 100);
  EXPECT_DOUBLE_EQ(fast["efficiency_uncapped_pct"].get<double>(), 200);
  const Json cached = candidates({dispatch("a", 0, 500, 3999)}, around)["hot_kernels"][0];
  EXPECT_EQ(cached["bound_type"], "unknown");
  EXPECT_FALSE(cached.contains("efficiency_percent"));
  around.device_peaks = Json::array();
  EXPECT_EQ(candidates({dispatch("a", 0, 2000, 10000)}, around)["hot_kernels"][0]["bound_type"],
            "unknown");
}

TEST(Spec_5_10, ArithmeticStandsAgainstThePeakOfItsElementType) {
  Surroundings around = surroundings();
  around.device_peaks = {{{"name", "compute_f32"}, {"value", 1e10}, {"unit", "FLOP/s"}},
                         {{"name", "compute_f64"}, {"value", 5e9}, {"unit", "FLOP/s"}}};
  Dispatch one = dispatch("a", 0, 2000, 10000);
  one.operations = 10000;  // in 2 us: 5e9 a second
  one.operation_type = "f32";
  const Json row = candidates({one}, around)["hot_kernels"][0];
  EXPECT_EQ(row["bound_type"], "compute");
  EXPECT_DOUBLE_EQ(row["compute_utilization_pct"].get<double>(), 50);
  EXPECT_EQ(roofline(candidates({one}, around), "t.json")["kernels"][0]["compute_utilization_pct"],
            50.0);
  EXPECT_DOUBLE_EQ(row["efficiency_uncapped_pct"].get<double>(), 50);
  one.operation_type = "f64";
  EXPECT_DOUBLE_EQ(candidates({one}, around)["hot_kernels"][0]["efficiency_percent"].get<double>(),
                   100);
  one.operation_type = "i32";
  EXPECT_EQ(candidates({one}, around)["hot_kernels"][0]["bound_type"], "unknown");
  const auto read = parse_trace(chrome_trace("p", {one}).dump(), "t.json");
  ASSERT_TRUE(read);
  EXPECT_EQ(read->front().operations, 10000u);
  EXPECT_EQ(read->front().operation_type, "i32");
}

TEST(Spec_5_3, OverlappingCallsCountOnceInTheWindow) {
  const Json rows = candidates({dispatch("a", 0, 3000), dispatch("a", 1000, 4000)}, surroundings());
  EXPECT_DOUBLE_EQ(rows["hot_kernels"][0]["e2e_share"].get<double>(), 1);
  EXPECT_DOUBLE_EQ(rows["hot_kernels"][0]["duration_us"].get<double>(), 6);
}

TEST(Spec_5_4, TheHighestPriorityThatMatchesIsTheCategory) {
  const std::vector<std::pair<const char*, const char*>> cases = {
      {"memcpy_gemm", "MemCpy"},
      {"fused_moe_gemm", "MoE"},
      {"flash_attn_fwd", "SDPA"},
      {"rms_norm", "Normalization"},
      {"rotary_embedding", "Rotary"},
      {"conv2d", "Convolution"},
      {"activate", "Activation"},
      {"embedding_gather", "Embedding"},
      {"Cijk_Ailk_Bljk", "GEMM"},
      {"vectorized_elementwise_kernel", "Elementwise"},
      {"matmul", "GEMM"},
      {"quant_pack", "Quantization"},
      {"ncclDevKernel_AllReduce", "Communication"},
      {"cross_device_reduce_1stage", "Communication"},
      {"total", "Others"}};
  for (const auto& [name, category] : cases) EXPECT_EQ(category_of(name), category) << name;
}

// The bare words "reduce" and "broadcast" are no collective.
TEST(Spec_5_9, OnlyWholeWordsMakeACollective) {
  for (const char* name : {"allReduceKernel", "all_gather", "reduce_scatter_tensor", "AllToAll",
                           "rccl_main", "cross_device_reduce_2stage"}) {
    EXPECT_TRUE(is_collective_name(name)) << name;
  }
  for (const char* name :
       {"reduce_rows", "broadcast_add", "p2p_copy", "overall_reducer", "small_gather"}) {
    EXPECT_FALSE(is_collective_name(name)) << name;
  }
}

class Spec_5_1 : public testing::Test {
 protected:
  void write(const std::string& name, const std::vector<Dispatch>& dispatches, size_t padding = 0) {
    const std::filesystem::path path = folder_ / name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << chrome_trace("p", dispatches).dump() << std::string(padding, ' ');
  }
  std::string taken() {
    const auto input = select_input(folder_.path());
    if (!input) return input.error().error_class;
    return input->path.lexically_relative(folder_.path()).string();
  }
  TempFolder folder_;
};

TEST_F(Spec_5_1, MergedTracesComeFirstAndLargerOnesInAClass) {
  write("x/TP-0-DECODE.json", {dispatch("a", 0, 1)}, 4000);
  write("x/bs_8.json", {dispatch("a", 0, 1)}, 5000);
  write("steady_state_chunk.json", {dispatch("a", 0, 1)}, 6000);
  write("small.trace", {dispatch("a", 0, 1)});
  write("large.json", {dispatch("a", 0, 1)}, 100);
  write("merged-1.json", {dispatch("a", 0, 1)});
  write("notes.txt", {dispatch("a", 0, 1)});
  std::vector<std::string> order;
  for (const auto& path : rank_inputs(folder_.path())) order.push_back(path.filename().string());
  EXPECT_EQ(order,
            (std::vector<std::string>{"merged-1.json", "large.json", "small.trace",
                                      "TP-0-DECODE.json", "bs_8.json", "steady_state_chunk.json"}));
  EXPECT_EQ(taken(), "merged-1.json");
}

TEST_F(Spec_5_1, TheFirstWithKernelsIsTakenAndAPromotionIsSaid) {
  write("merged-1.json", {});
  write("b.json", {dispatch("a", 0, 1)});
  const auto input = select_input(folder_.path());
  ASSERT_TRUE(input) << input.error().message;
  EXPECT_EQ(input->path.filename(), "b.json");
  ASSERT_EQ(input->warnings.size(), 1u);
  EXPECT_EQ(input->warnings[0]["code"], "trace_analysis_input_promoted");
}

TEST_F(Spec_5_1, EightFilesAreLookedInto) {
  for (int i = 0; i < 8; ++i) write("empty" + std::to_string(i) + ".json", {}, 1000);
  write("small.json", {dispatch("a", 0, 1)});
  EXPECT_EQ(taken(), "missing_trace_input");
  std::filesystem::remove(folder_ / "empty0.json");
  EXPECT_EQ(taken(), "small.json");
}

TEST_F(Spec_5_1, FragmentsAloneAreSaidToBeThat) {
  write("capture_1/a.json", {dispatch("a", 0, 1)});
  const auto input = select_input(folder_.path());
  ASSERT_TRUE(input);
  EXPECT_EQ(input->warnings[0]["code"], "trace_input_capture_only");
}

TEST_F(Spec_5_1, NoneIsAnError) {
  EXPECT_EQ(taken(), "missing_trace_input");
  write("a.json", {});
  EXPECT_EQ(taken(), "missing_trace_input");
  std::ofstream(folder_ / "b.json") << "{";
  EXPECT_EQ(taken(), "invalid_trace");
  EXPECT_EQ(select_input(folder_ / "gone.json").error().error_class, "unreadable_file");
}

TEST(Spec_3_1, ADryRunChangesNothing) {
  Json state = Json::object();
  record_trace_analyze(state, {}, {{"dry_run", true}, {"hot_kernels", Json::array()}});
  EXPECT_EQ(state, Json::object());
}

// Section 14: collective with nccl_summary, and one of several devices.
TEST(Spec_3_1, CollectivesAreNotOfferedToAnybodyElse) {
  Json state = Json::object();
  record_trace_analyze(
      state, {},
      {{"reusable_native_kernel_ids", {"k001", "k002", "k003"}},
       {"trace_health_warnings", Json::array()},
       {"hot_kernels",
        {{{"kernel_id", "k001"}},
         {{"kernel_id", "k002"}, {"candidate_source", "nccl_summary"}, {"is_multigpu", true}},
         {{"kernel_id", "k003"}, {"kernel_contract", {{"kind", "collective"}}}}}}});
  const Json& last = state["last_trace_analyze"];
  EXPECT_EQ(last["reusable_native_kernel_ids"], Json({"k001"}));
  ASSERT_EQ(last["trace_health_warnings"].size(), 1u);
  EXPECT_EQ(last["trace_health_warnings"][0]["code"], "collective_lane_withheld_kernels");
  EXPECT_EQ(last["trace_health_warnings"][0]["kernel_ids"], Json({"k002", "k003"}));
}

TEST(Spec_3_1, SnapshotsKeepTheFirstAndTheNewest) {
  Json state = {{"baseline_tput", 10.0}};
  for (int i = 1; i <= 60; ++i) {
    record_trace_analyze(state, {},
                         {{"roofline_snapshot_id", i},
                          {"hot_kernels", Json::array()},
                          {"skipped_kernels", Json::array()}});
  }
  EXPECT_EQ(state["roofline_snapshots"].size(), 50u);
  EXPECT_EQ(state["roofline_snapshots"].front()["id"], 1);
  EXPECT_EQ(state["roofline_snapshots"].back()["id"], 60);
  EXPECT_EQ(state["last_trace_analyze"]["roofline_snapshot_id"], 60);
}

}  // namespace
}  // namespace hyperloom::trace
