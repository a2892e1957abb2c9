// Profile and analysis of a session, with every file that they leave.
#include "hyperloom/trace/analyze.h"

#include <gtest/gtest.h>

#include "hyperloom/task/testing.h"
#include "hyperloom/trace/chrome.h"

namespace hyperloom::trace {
namespace {

namespace fs = std::filesystem;

constexpr const char* kSource =
    "// fake: kernel project 8000\n// fake: kernel activate 1500\n// fake: kernel total 500\n";

class Analyze : public testing::Test {
 protected:
  void SetUp() override {
    session_.write("tree/model.loom", kSource);
    session_.start({"model.loom"});
    session_.script().peaks = {{{"name", "bandwidth"}, {"value", 1e10}, {"unit", "B/s"}}};
  }
  // Profile and analysis, as the coordinator records them.
  Json analyze(Json payload = Json::object()) {
    if (!payload.contains("trace_input")) {
      const auto trace = profile(session_.context(), "first");
      EXPECT_TRUE(trace) << trace.error().message;
      payload["trace_input"] = trace.value_or("");
    }
    Json result = trace_analyze(payload, session_.context());
    if (text_of(result, "status") == "ok") {
      session_.change([&](Json& state) { record_trace_analyze(state, payload, result); });
    }
    return result;
  }
  // One whose session reads these variables.
  void restart(std::map<std::string, std::string> variables) {
    session_.variables = std::move(variables);
    session_.start({"model.loom"});
  }
  Json document(const fs::path& path) const {
    const auto read = read_json(path);
    EXPECT_TRUE(read) << read.error().message;
    return read ? *read : Json();
  }
  TempFolder folder_;
  task::FakeSession session_{folder_.path()};
};

TEST_F(Analyze, Spec_3_1_TheResultNamesWhatIsUsedDownstream) {
  const Json result = analyze();
  EXPECT_EQ(result["status"], "ok") << result;
  for (const char* field :
       {"candidates_path", "kernel_roofline_path", "trace_report_path", "steady_state_trace"}) {
    EXPECT_TRUE(fs::exists(text_of(result, field))) << field;
  }
  EXPECT_EQ(result["hot_kernels"].size(), 3u);
  EXPECT_EQ(result["task_groups"].size(), 3u);
  EXPECT_EQ(result["skipped_kernels"], Json::array());
  EXPECT_EQ(result["framework"], "loom");
}

TEST_F(Analyze, Spec_3_1_TheStateKeepsTheAnalysis) {
  analyze();
  const Json last = session_.state()["last_trace_analyze"];
  for (const char* field :
       {"trace_input", "steady_state_trace", "candidates_path", "kernel_roofline_path",
        "hot_kernels_top15", "kernel_roofline_top15", "skipped_kernels_top", "task_groups",
        "reusable_native_kernel_ids", "trace_health_warnings", "analysis_md_path",
        "analysis_md_text", "roofline_snapshot_id", "roofline_baseline_gain_at_snapshot",
        "tree_hash", "ts"}) {
    EXPECT_TRUE(last.contains(field)) << field;
  }
  EXPECT_EQ(last["roofline_snapshot_id"], 1);
  EXPECT_EQ(last["tree_hash"],
            workload::tree_hash(session_.tree(), session_.workload().files()).value());
  analyze();
  EXPECT_EQ(session_.state()["last_trace_analyze"]["roofline_snapshot_id"], 2);
  EXPECT_EQ(session_.state()["roofline_snapshots"].size(), 2u);
}

TEST_F(Analyze, Spec_5_7_CandidatesAreRankedAndSayWhoseTheyAre) {
  analyze();
  const Json artifact = document(session_.layout().candidates());
  for (const char* field :
       {"model_name", "framework", "target_platform", "analysis_mode", "runtime_env",
        "trace_input_type", "source", "dry_run", "hot_kernels", "routable_kernels",
        "skipped_kernels", "task_groups", "trace_report_path"}) {
    EXPECT_TRUE(artifact.contains(field)) << field;
  }
  const Json& first = artifact["hot_kernels"][0];
  EXPECT_EQ(first["kernel_id"], "k001");
  EXPECT_EQ(first["name"], "project");
  EXPECT_DOUBLE_EQ(first["gpu_pct"].get<double>(), 80);
  EXPECT_DOUBLE_EQ(first["e2e_share"].get<double>(), 0.8);
  EXPECT_EQ(first["source_file"], (session_.tree() / "model.loom").string());
  EXPECT_EQ(artifact["hot_kernels"][1]["kernel_category"], "Activation");
  // Absent, not zero: what only a server has, and what is not known.
  for (const char* field : {"port", "server_args", "arithmetic_intensity", "efficiency_percent"}) {
    EXPECT_FALSE(first.contains(field)) << field;
  }
}

TEST_F(Analyze, Spec_6_5_TheFilesHaveTheirNames) {
  const Json result = analyze();
  const fs::path run = session_.base() / "data/kernel-agent/runs/s1";
  for (const char* name :
       {"session_state.json", "kernel_candidates.json", "tracelens/analysis.md",
        "tracelens/tracelens_report.json", "tracelens/summary.json",
        "tracelens/system_findings/window.md", "tracelens/category_findings/Activation.md",
        "tracelens/category_findings/Others.md"}) {
    EXPECT_TRUE(fs::exists(run / name)) << name;
  }
  const std::string id = text_of(result, "run_id");
  EXPECT_TRUE(fs::exists(run / "logs/trace_analyze" / (id + ".log")));
  const Json status = document(run / "status/trace_analyze" / (id + ".json"));
  EXPECT_EQ(status["state"], "succeeded");
  for (const char* field :
       {"tool", "run_id", "current_step", "pid", "started_at", "updated_at", "log_path",
        "artifact_paths", "offset_bytes", "last_lines", "ended_at", "duration_seconds"}) {
    EXPECT_TRUE(status.contains(field)) << field;
  }
  const Json state = document(run / "session_state.json");
  for (const char* field :
       {"session_id", "last_tool", "last_run_id", "updated_at", "model_name", "framework"}) {
    EXPECT_TRUE(state.contains(field)) << field;
  }
  EXPECT_EQ(document(run / "tracelens/summary.json")["counts"]["kernels"], 3);
}

TEST_F(Analyze, Spec_5_10_TheRooflineReportHasItsFields) {
  analyze();
  const Json report = document(session_.layout().reports() / "kernel_roofline.json");
  EXPECT_EQ(report["schema_version"], 1);
  for (const char* field : {"source", "trace_input", "trace_input_type", "analysis_md_path",
                            "kernel_candidates_path", "roofline_json_path", "kernels"}) {
    EXPECT_TRUE(report.contains(field)) << field;
  }
  EXPECT_EQ(report["kernels"][0]["roofline_source"], "placeholder");
}

// Section 14: native workload.
TEST_F(Analyze, Spec_14_PeaksAreMeasuredOnceAndRecorded) {
  analyze();
  analyze();
  EXPECT_EQ(session_.script().count("peaks"), 1u);
  const Json recorded = session_.state()["device_peaks"];
  EXPECT_EQ(recorded, session_.script().peaks);
  EXPECT_EQ(text_of(session_.workload().describe(), "kind"), "fake");
  EXPECT_EQ(document(session_.layout().candidates())["framework"], "loom");
}

TEST_F(Analyze, Spec_3_1_AFailureSaysWhatIsMissing) {
  EXPECT_EQ(trace_analyze({}, session_.context())["error_class"], "missing_trace_input");
  const fs::path gone = session_.base() / "gone.json";
  const Json unreadable = trace_analyze({{"trace_input", gone.string()}}, session_.context());
  EXPECT_EQ(unreadable["status"], "failed");
  EXPECT_EQ(unreadable["error_class"], "unreadable_file");
  EXPECT_EQ(unreadable["hot_kernels"], Json::array());
  session_.write("foreign.json", R"({"traceEvents":[]})");
  const Json foreign = trace_analyze({{"trace_input", (session_.base() / "foreign.json").string()}},
                                     session_.context());
  EXPECT_EQ(foreign["status"], "failed");
  EXPECT_EQ(foreign["error_class"], "not_available");
  EXPECT_NE(text_of(foreign, "error").find("reader"), std::string::npos);
  EXPECT_FALSE(session_.state().contains("last_trace_analyze"));
}

TEST_F(Analyze, Spec_3_1_WrongRoutesAndFrameworksWarn) {
  const Json result = analyze({{"trace_input", *profile(session_.context(), "p")},
                               {"analysis_route", "guess"},
                               {"framework", "vllm"}});
  EXPECT_EQ(result["status"], "ok");
  EXPECT_EQ(result["trace_health_warnings"][0]["code"], "invalid_analysis_route");
  EXPECT_EQ(result["trace_health_warnings"][1]["code"], "stale_framework_overridden");
}

TEST_F(Analyze, Spec_3_1_TopKAndADryRun) {
  const Json two = analyze({{"trace_input", *profile(session_.context(), "p")}, {"top_k", 2}});
  EXPECT_EQ(two["hot_kernels"].size(), 2u);
  const Json dry = trace_analyze({{"dry_run", true}}, session_.context());
  EXPECT_EQ(dry["status"], "ok");
  EXPECT_EQ(dry["dry_run"], true);
  EXPECT_EQ(dry["hot_kernels"], Json::array());
  // What was analyzed before is still there.
  EXPECT_EQ(document(session_.layout().candidates())["hot_kernels"].size(), 2u);
}

TEST_F(Analyze, Spec_11_TopKOfTheEnvironmentHoldsWhereThePayloadNamesNone) {
  restart({{"HYPERLOOM_KERNEL_CANDIDATES_TOP_K", "1"}});
  EXPECT_EQ(analyze()["hot_kernels"].size(), 1u);
  EXPECT_EQ(analyze({{"top_k", 2}})["hot_kernels"].size(), 2u);
}

TEST_F(Analyze, Spec_11_TheIdleGateMovesWithItsVariable) {
  // One kernel that runs for half of the window.
  const std::vector<workload::Dispatch> half = {{.kernel = "a", .begin_ns = 0, .end_ns = 1000},
                                                {.kernel = "a", .begin_ns = 3000, .end_ns = 4000}};
  const fs::path trace = session_.layout().session / "half.json";
  ASSERT_TRUE(write_json(trace, chrome_trace("model", half)));
  const Json payload = {{"trace_input", trace.string()}};
  EXPECT_FALSE(analyze(payload)["hot_kernels"][0].contains("blocked_by"));
  restart({{"HYPERLOOM_TRACELENS_IDLE_PCT_THRESHOLD", "40"}});
  EXPECT_EQ(text_of(analyze(payload)["hot_kernels"][0], "blocked_by"), "high_gpu_idle_pct");
}

TEST_F(Analyze, Spec_3_1_TheBypassRouteKeepsTenToFifteenRows) {
  std::string source;
  for (int i = 0; i < 20; ++i) source += "// fake: kernel k" + std::to_string(i) + " 100\n";
  session_.write("tree/model.loom", source);
  const std::string trace = *profile(session_.context(), "many");
  const auto rows = [&](const std::string& route, int top_k) {
    return analyze(
               {{"trace_input", trace}, {"analysis_route", route}, {"top_k", top_k}})["hot_kernels"]
        .size();
  };
  EXPECT_EQ(rows("bypass", 2), 10u);
  EXPECT_EQ(rows("bypass", 12), 12u);
  EXPECT_EQ(rows("bypass", 100), 15u);
  EXPECT_EQ(rows("deterministic", 2), 2u);
}

TEST_F(Analyze, Spec_3_1_TheBudgetEndsTheWait) {
  const std::string trace = *profile(session_.context(), "p");
  auto measuring = session_.lanes().acquire("benchmark_lane", "other", Deadline(), {});
  ASSERT_TRUE(measuring) << measuring.error().message;
  const Json result =
      trace_analyze({{"trace_input", trace}, {"budget_minutes", 0.002}}, session_.context());
  EXPECT_EQ(result["status"], "failed");
  EXPECT_NE(text_of(result, "error_class"), "");
}

TEST_F(Analyze, Spec_3_1_AFolderIsRememberedAsWhatWasAskedFor) {
  const fs::path trace = *profile(session_.context(), "p");
  const Json payload = {{"trace_dir", trace.parent_path().string()}};
  const Json result = trace_analyze(payload, session_.context());
  ASSERT_EQ(result["status"], "ok") << result;
  session_.change([&](Json& state) { record_trace_analyze(state, payload, result); });
  const Json last = session_.state()["last_trace_analyze"];
  EXPECT_EQ(last["trace_dir"], payload["trace_dir"]);
  EXPECT_EQ(last["trace_input"], trace.string());
}

TEST_F(Analyze, Spec_3_1_RowsSayWhatTheirKernelsRunUnder) {
  fs::create_directories(folder_.path() / "own");
  task::FakeSession own(folder_.path() / "own");
  own.variables = {{"TRITON_X", "its"},
                   {"VLLM_API_KEY", "hidden"},
                   {"CONC", "8"},
                   {"AITER_token", "hidden"},
                   {"HOME", "/root"},
                   {"CONCH", "no"},
                   {"CUDA_VISIBLE_DEVICES", "0"},
                   {"TP", "2"},
                   {"ISL", "128"},
                   {"OSL", "64"},
                   {"MAX_MODEL_LEN", "256"}};
  own.write("tree/model.loom", kSource);
  own.start({"model.loom"});
  own.change([](Json& state) {
    state["current_best"] = {{"extra_envs", {{"TRITON_X", "mine"}, {"tile", "4"}}},
                             {"extra_server_args", "--fast"}};
  });
  const auto trace = profile(own.context(), "p");
  ASSERT_TRUE(trace) << trace.error().message;
  const Json row = trace_analyze({{"trace_input", *trace}}, own.context())["hot_kernels"][0];
  EXPECT_EQ(row["env_vars"], Json({{"TRITON_X", "mine"},
                                   {"CONC", "8"},
                                   {"CUDA_VISIBLE_DEVICES", "0"},
                                   {"TP", "2"},
                                   {"ISL", "128"},
                                   {"OSL", "64"},
                                   {"MAX_MODEL_LEN", "256"}}));
  EXPECT_EQ(row["runtime_args"], "--fast");
  EXPECT_TRUE(fs::exists(text_of(row, "trace_report_path")));
  EXPECT_EQ(document(own.layout().candidates())["hot_kernels"][0], row);
}

TEST_F(Analyze, Spec_4_2_AnotherAnalysisHasAnotherKey) {
  const auto key = [&] { return text_of(session_.state()["last_trace_analyze"], "analysis_key"); };
  analyze();
  const std::string first = key();
  EXPECT_TRUE(first.starts_with(session_.layout().candidates().string())) << first;
  analyze();
  EXPECT_EQ(key(), first);
  session_.write("tree/model.loom", std::string(kSource) + "// fake: kernel more 100\n");
  analyze();
  EXPECT_NE(key(), first);
}

TEST_F(Analyze, Spec_4_8_AProfileIsAChromeTraceOfTheRuntimesOwnTimes) {
  const auto path = profile(session_.context(), "first");
  ASSERT_TRUE(path) << path.error().message;
  EXPECT_EQ(session_.state()["last_profile_trace"], *path);
  const Json trace = document(*path);
  ASSERT_EQ(trace["traceEvents"].size(), 4u);  // three dispatches and the window
  for (const Json& event : trace["traceEvents"]) {
    EXPECT_EQ(event["ph"], "X");
    for (const char* field : {"name", "cat", "ts", "dur", "pid", "tid"}) {
      EXPECT_TRUE(event.contains(field)) << field;
    }
  }
  EXPECT_TRUE(read_trace(*path));
}

}  // namespace
}  // namespace hyperloom::trace
