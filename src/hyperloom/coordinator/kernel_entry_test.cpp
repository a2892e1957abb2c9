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
