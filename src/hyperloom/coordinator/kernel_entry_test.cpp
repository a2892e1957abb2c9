// The entry of KERNEL in whole sessions: which branch is taken, what is dispatched and how often.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "hyperloom/coordinator/session_testing.h"

namespace hyperloom::coordinator {
namespace {

using Spec_1_2_Session = SessionTest;
using Spec_4_1_Entry = SessionTest;
using Spec_4_2_Reprofile = SessionTest;
using Spec_3_2_Session = SessionTest;
using Spec_4_5 = SessionTest;
using Spec_14_Session = SessionTest;
using Names = std::vector<std::string>;

// The kernel is so small a part of the whole that a faster one shows nowhere.
std::string drowned_model() {
  std::string model = kModel;
  const std::string fixed = "fake: fixed 10000";
  return model.replace(model.find(fixed), fixed.size(), "fake: fixed 10000000000");
}

TEST_F(Spec_1_2_Session, APatchThatWasRejectedIsSkippedByNameAndByContent) {
  Plan setup{.variables = kForge, .options = quick(), .model = drowned_model()};
  setup.envelopes = {kSilent,
                     kSilent,
                     kSilent,
                     asks("integrate", {{"kernel_id", "k001"}}),
                     asks("apply_patch", {{"kernel_id", "k001"}}),
                     hints("skip_to_sweep")};
  const auto made = run(setup);
  const Json state = made->session.state();
  ASSERT_EQ(state["rejected_kernel_patches"].size(), 1u) << state.dump(2);
  std::vector<bus::Message> skipped;
  for (const bus::Message& row : made->rows("response")) {
    if (text_of(row.payload, "source") == "shared_state_kernel_rejection") skipped.push_back(row);
  }
  ASSERT_EQ(skipped.size(), 2u);
  for (const bus::Message& row : skipped) {
    EXPECT_EQ(row.payload["status"], "skipped");
    EXPECT_EQ(row.payload["decision"], "REVERT");
    EXPECT_EQ(row.payload["result"]["error_class"], "kernel_patch_rejected");
  }
  const auto rejected = std::ranges::count_if(state["lifecycle_events"], [](const Json& event) {
    return event["status"] == "END" && event["detail"] == "rejected";
  });
  EXPECT_EQ(rejected, 2);
  EXPECT_EQ(made->session.decisions().size(), 1u) << "judged once";
}

TEST_F(Spec_4_1_Entry, GeakOwnsThePhaseWhateverTheSwitchOfTheBatchSays) {
  Plan setup{.variables = kGeak, .options = quick()};
  setup.options.auto_kernel_opt = false;
  const auto made = run(setup);
  EXPECT_EQ(made->asked(), (Names{"trace_analyze", "geak_e2e", "integrate", "integrate"}));
  EXPECT_EQ(made->not_run("run_fusion"), "") << "no lane is reached";
  EXPECT_EQ(made->not_run("run_gemm_tuning"), "");
  EXPECT_EQ(made->session.state()["phase_history"][1]["reason"], "kernel_no_more_leverage");
}

TEST_F(Spec_4_1_Entry, TheBranchesOfForgeComeInTheirOrder) {
  const auto made = run({.variables = kForge, .options = quick()});
  EXPECT_EQ(made->asked(), (Names{"trace_analyze", "run_gemm_tuning", "run_fusion",
                                  "run_optimization", "integrate", "integrate"}));
  EXPECT_EQ(made->not_run("run_gemm_tuning"), "not_available");
}

TEST_F(Spec_4_1_Entry, TheRecordOfThePhaseSaysWhatBecameOfEachStep) {
  auto variables = kForge;
  variables["HYPERLOOM_SKIP_FUSION"] = "1";
  const auto made = run({.variables = variables, .options = quick()});
  const Json state = made->session.state();
  const Json& record = state["phase_history"][1];
  ASSERT_EQ(record["phase"], "KERNEL_AGENT");
  const Json& entry = record["entry"];
  EXPECT_EQ(entry["gemm_tuning"], Json({{"status", "failed"},
                                        {"source", "kernel_entry_auto"},
                                        {"error_class", "not_available"}}));
  EXPECT_EQ(entry["fusion"], Json({{"status", "skipped"}, {"reason", "skip_switch"}}));
  EXPECT_EQ(entry["collective"], Json({{"status", "skipped"}, {"reason", "single_rank"}}));
  EXPECT_EQ(entry["batch"],
            Json({{"status", "done"}, {"source", "kernel_entry_auto"}, {"batches", 1}}));
  EXPECT_FALSE(state.contains("phase_entry")) << "it is of the phase that was left";
  EXPECT_EQ(made->report()["phases"][1]["entry"], entry);
}

TEST_F(Spec_4_2_Reprofile, NothingThatChangedIsProfiledAgain) {
  run({.variables = kForge, .options = quick(), .model = drowned_model()});
  const auto again = [](Json& state) {
    state["phase"] = "KERNEL_AGENT";
    state["phase_entered"] = false;
  };
  auto same = run({.variables = kForge, .options = quick(), .change = again});
  EXPECT_EQ(same->not_run("reprofile"), "unchanged");
  EXPECT_EQ(same->session.script().count("trace"), 0u);
  same.reset();
  // The analysis of another setting counts for nothing.
  const auto other = run({.variables = kForge, .options = quick(), .change = [&](Json& state) {
                            again(state);
                            state["current_best"] = {{"extra_envs", {{"other", "1"}}}};
                          }});
  EXPECT_EQ(other->session.script().count("trace"), 1u);
}

TEST_F(Spec_4_2_Reprofile, ATaskThatHasRunIsUsedAgain) {
  run({.variables = kForge, .options = quick(), .model = drowned_model()});
  const auto again = [](Json& state) {
    state["phase"] = "KERNEL_AGENT";
    state["phase_entered"] = false;
  };
  // The throughput drifted, and what would be profiled is the same.
  auto drifted = run({.variables = kForge, .options = quick(), .change = [&](Json& state) {
                        again(state);
                        state["last_reprofile"]["tput"] = 1.0;
                      }});
  EXPECT_EQ(drifted->not_run("reprofile"), "task_is_done");
  EXPECT_EQ(drifted->session.script().count("trace"), 0u);
  const Json before = drifted->session.state()["last_trace_analyze"]["roofline_snapshot_id"];
  drifted.reset();
  // Another setting was profiled in between: its analysis is replaced, from the trace of then.
  const auto back = run({.variables = kForge, .options = quick(), .change = [&](Json& state) {
                           again(state);
                           state["last_reprofile"] = {{"task", "kernel_entry_g1_other"}};
                         }});
  EXPECT_EQ(back->session.script().count("trace"), 0u);
  const Json state = back->session.state();
  EXPECT_EQ(state["last_trace_analyze"]["roofline_snapshot_id"], before.get<int>() + 1);
  EXPECT_TRUE(text_of(state["last_reprofile"], "task").starts_with("kernel_entry_g0_"));
}

TEST_F(Spec_4_2_Reprofile, ItsTaskIsNamedAfterStackAndConfiguration) {
  auto made = run({.variables = kForge, .options = quick()});
  const Json last = made->session.state()["last_reprofile"];
  EXPECT_EQ(last["task"], "kernel_entry_g0_" + text_of(last, "fingerprint").substr(0, 12));
  made.reset();
  // After a KEEP throughput and tree are others.
  const auto again = run({.variables = kForge, .options = quick(), .change = [](Json& state) {
                            state["phase"] = "KERNEL_AGENT";
                            state["phase_entered"] = false;
                          }});
  const Json next = again->session.state()["last_reprofile"];
  EXPECT_EQ(next["task"], "kernel_entry_g1_" + text_of(next, "fingerprint").substr(0, 12));
  EXPECT_NE(next["fingerprint"], last["fingerprint"]);
  EXPECT_EQ(again->session.script().count("trace"), 1u);
}

TEST_F(Spec_4_5, TheBatchNamesNoKernel) {
  const auto made = run({.variables = kForge, .options = quick()});
  for (const bus::Message& row : made->rows("request")) {
    if (row.payload["kind"] != "run_optimization") continue;
    EXPECT_EQ(row.payload["source"], "kernel_entry_auto");
    EXPECT_EQ(row.payload["params"],
              Json({{"candidates_path", made->session.layout().candidates().string()},
                    {"session_id", "s1"}}));
  }
}

TEST_F(Spec_4_5, FailuresAreDispatchedAgainBatchByBatchUpToTheirCap) {
  auto variables = kForge;
  variables["HL_INFRA_RETRY_HIGH_IMPACT"] = "off";
  variables["INFERENCE_OPTIMIZER_KERNEL_OPT_MAX_FAILURES"] = "3";
  Plan setup{.variables = variables, .options = quick()};
  setup.before = [](const std::string& call) {
    if (call.starts_with("kernel_ns")) throw std::runtime_error("the harness is broken");
  };
  const auto made = run(setup);
  const Names asked = made->asked();
  EXPECT_EQ(std::ranges::count(asked, "run_optimization"), 3);
  std::set<std::string> answered;
  for (const bus::Message& row : made->rows("response")) {
    if (row.payload["kind"] != "run_optimization_done") continue;
    EXPECT_EQ(row.payload["status"], "failed");
    EXPECT_TRUE(answered.insert(row.in_reply_to).second);
  }
  EXPECT_EQ(answered.size(), 3u);
  EXPECT_EQ(made->report()["outcome"], "no_gain");
}

TEST_F(Spec_4_5, WithoutAnAnalysisThereIsNoBatch) {
  Plan setup{.variables = kForge, .options = quick()};
  // The analysis cannot be written, so there are no candidates.
  setup.change = [this](Json&) {
    std::filesystem::create_directories(folder_.path() / "data/kernel-agent/runs/s1" /
                                        "kernel_candidates.json");
  };
  const auto made = run(setup);
  const Names asked = made->asked();
  EXPECT_EQ(std::ranges::count(asked, "run_optimization"), 0);
  EXPECT_NE(made->not_run("reprofile"), "");
  EXPECT_EQ(made->report()["outcome"], "no_gain");
}

// What a request of whoever started the program answers, in KERNEL of a session that has ended.
Json typed(SessionRun& run, const std::string& kind, const Json& params) {
  run.session.change([](Json& state) {
    state["phase"] = "KERNEL_AGENT";
    state["phase_entered"] = true;
    state["session_seconds"] = 0.0;
  });
  const Environment environment(run.session.variables);
  bus::Tasks tasks(bus::Database::open(run.session.layout().database(), environment).value());
  Coordinator coordinator(*run.context, tasks, quick(), {});
  return coordinator.request(kind, params).value();
}

TEST_F(Spec_3_2_Session, ADryRunIsForTheCommandLineAlone) {
  Plan setup{.variables = kForge, .options = quick()};
  setup.options.kernel = "work";
  setup.envelopes = {kSilent, kSilent, kSilent,
                     asks("run_optimization", {{"kernel_id", "k001"}, {"dry_run", true}}),
                     hints("skip_to_sweep")};
  const auto made = run(setup);
  const Json denied = made->session.state()["policy_denial_history"];
  ASSERT_EQ(denied.size(), 1u);
  EXPECT_EQ(denied[0]["rule"], "payload");

  EXPECT_EQ(typed(*made, "trace_analyze", {{"dry_run", true}})["dry_run"], true);
  const Json ledger = made->session.state()["kernel_opt_task_attempts"];
  const Json tried = typed(*made, "run_optimization",
                           {{"kernel_id", "k001"}, {"dry_run", true}, {"micro_speedup", 1.3}});
  EXPECT_EQ(tried["proposal"]["decision"], "NEEDS_REVIEW") << tried.dump(2);
  EXPECT_EQ(tried["verification"]["micro_speedup"], 1.3);
  EXPECT_EQ(made->session.state()["kernel_opt_task_attempts"], ledger);
}

TEST_F(Spec_3_2_Session, KernelsWithoutShapesAreTakenWhereTheSessionAllowsIt) {
  Plan setup{.variables = kForge, .options = quick()};
  setup.options.kernel_enabled = false;
  const auto made = run(setup);
  made->session.change([](Json& state) { state["kernel_enabled"] = true; });
  Json row = {{"kernel_id", "k001"},
              {"name", "work"},
              {"source_function", "work"},
              {"source_file", (made->session.tree() / "model.loom").string()},
              {"reusable_native_kernel", true},
              {"gpu_pct", 99.0}};
  const Json params = {{"candidate", row}};
  EXPECT_EQ(typed(*made, "run_optimization", params)["error_class"], "empty_kernel_shape");
  made->session.change([](Json& state) { state["allow_empty_kernel_shape"] = true; });
  EXPECT_NE(text_of(typed(*made, "run_optimization", params), "error_class"), "empty_kernel_shape");
}

TEST_F(Spec_14_Session, UnderTheDefaultOrderRequestsGoToGeakOrAreNotAvailable) {
  Plan setup{.variables = kGeak, .options = quick()};
  setup.options.kernel = "work";  // the phase waits for requests
  setup.envelopes = {kSilent,
                     kSilent,
                     kSilent,
                     asks("run_gemm_tuning"),
                     asks("run_optimization", {{"kernel_id", "k001"}}),
                     hints("skip_to_sweep")};
  std::vector<agent::Turn> told;
  setup.told = &told;
  const auto made = run(setup);
  std::map<std::string, Json> results;
  for (const bus::Message& row : made->rows("response")) {
    results[text_of(row.payload, "kind")] = row.payload["result"];
    EXPECT_EQ(compact(row.payload).find("backend_not_enabled"), std::string::npos);
  }
  EXPECT_EQ(results["run_gemm_tuning_done"]["status"], "failed");
  EXPECT_EQ(results["run_gemm_tuning_done"]["error_class"], "not_available");
  ASSERT_GE(told.size(), 5u);
  EXPECT_TRUE(value_of(told[4].state, "kernel_opt_task_attempts").empty()) << "no attempt";
  EXPECT_EQ(results["run_optimization_done"]["selected_backends"], Json{"geak"});
}

}  // namespace
}  // namespace hyperloom::coordinator
