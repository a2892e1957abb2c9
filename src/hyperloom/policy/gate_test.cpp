#include "hyperloom/policy/gate.h"

#include <gtest/gtest.h>

#include <fstream>

#include "hyperloom/core/testing.h"
#include "hyperloom/policy/denials.h"
#include "hyperloom/policy/sandbox.h"

namespace hyperloom::policy {
namespace {

using Variables = std::map<std::string, std::string>;

class Gate : public testing::Test {
 protected:
  Gate() {
    situation_.role = "orchestration";
    situation_.phase = "KERNEL_AGENT";
    situation_.baseline_tput = 1000;
    situation_.kinds = {"apply_patch",     "integrate",        "run_collective",
                        "run_gemm_tuning", "run_optimization", "trace_analyze"};
    situation_.layout = session::Layout::make(folder_.path(), "one").value();
    situation_.trusted = {folder_ / "tree", folder_ / "framework"};
    fs::create_directories(situation_.layout.session);
    fs::create_directories(situation_.layout.run());
    fs::create_directories(folder_ / "tree");
  }

  static Intent request(const std::string& kind, Json params = Json::object()) {
    return {"request",
            {{"target_agent", "kernel_agent"}, {"kind", kind}, {"params", std::move(params)}}};
  }
  static Intent intent(const std::string& type, Json payload) { return {type, std::move(payload)}; }

  Verdict judge(const Intent& what, Variables variables = {}) const {
    return PolicyGate(Environment(std::move(variables))).judge(what, situation_);
  }
  // The rule that denies, or "".
  std::string rule(const Intent& what, Variables variables = {}) const {
    const auto denial = judge(what, std::move(variables)).denial;
    return denial ? denial->rule : "";
  }
  std::string rule_of_path(const std::string& key, const Json& value) const {
    return rule(request("integrate", {{key, value}}));
  }

  TempFolder folder_;
  Situation situation_;
};

using Spec_1_2_Gate = Gate;
using Spec_3_2_Gate = Gate;
using Spec_9 = Gate;
using Spec_14_Gate = Gate;

const char* const kPhases[] = {"PRELUDE",      "FRAMEWORK_AGENT", "EXPLORE",
                               "KERNEL_AGENT", "SWEEP",           "CLOSE"};

TEST_F(Spec_14_Gate, WithoutABaselineEveryOtherKindIsDeniedAsExecutionOrderInEveryPhase) {
  situation_.baseline_tput = 0;
  for (const char* phase : kPhases) {
    situation_.phase = phase;
    for (const char* kind : {"integrate", "run_optimization", "run_collective", "run_fusion",
                             "kernel_opt", "apply_patch", "run_gemm_tuning"}) {
      EXPECT_EQ(rule(request(kind)), "execution_order") << phase << kind;
    }
    EXPECT_EQ(rule(request("trace_analyze")), "") << phase;
  }
  situation_.baseline_tput = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(rule(request("integrate")), "execution_order");
}

TEST_F(Spec_14_Gate, CoordinatorOwnedKindsAreDeniedInEveryPhase) {
  for (const char* phase : kPhases) {
    situation_.phase = phase;
    for (const char* kind : {"run_fusion", "run_collective"}) {
      EXPECT_EQ(rule(request(kind)), "phase_incompatible") << phase << kind;
      EXPECT_EQ(rule(request(kind), {{"INFERENCE_OPTIMIZER_STRICT_PHASE", "0"}}),
                "phase_incompatible");
    }
  }
}

TEST_F(Spec_14_Gate, UnregisteredKindPassesInEveryPhase) {
  for (const char* phase : kPhases) {
    situation_.phase = phase;
    EXPECT_EQ(rule(request("kernel_opt", {{"patch_path", "/etc/passwd"}, {"dry_run", true}})), "");
  }
}

TEST_F(Spec_14_Gate, KernelWorkOutsideOfKernelIsPhaseIncompatible) {
  for (const char* phase : kPhases) {
    situation_.phase = phase;
    const std::string expected = std::string(phase) == "KERNEL_AGENT" ? "" : "phase_incompatible";
    for (const char* kind : {"run_optimization", "integrate", "apply_patch", "run_gemm_tuning"}) {
      EXPECT_EQ(rule(request(kind)), expected) << phase << kind;
    }
    EXPECT_EQ(rule(request("trace_analyze")), "");
  }
}

TEST_F(Spec_1_2_Gate, WhoSpeaksIsJudgedBeforeWhatIsSaid) {
  situation_.baseline_tput = 0;
  situation_.closing = true;
  situation_.role = "nobody";
  EXPECT_EQ(rule(request("integrate")), "role");
  situation_.role = "critic";
  EXPECT_EQ(rule(request("integrate")), "request_role");
  situation_.role = "robustness";
  EXPECT_EQ(rule(request("integrate")), "request_role");
  situation_.role = "orchestration";
  Intent bad = request("");
  bad.payload["target_agent"] = "";
  EXPECT_EQ(rule(bad), "payload");
  bad.payload["target_agent"] = "critic";
  EXPECT_EQ(rule(bad), "request_target");
  bad.payload["target_agent"] = "kernel_agent";
  EXPECT_EQ(rule(bad), "payload");
  bad.payload["kind"] = 7;
  EXPECT_EQ(rule(bad), "payload");
  EXPECT_EQ(rule(request("integrate")), "execution_order");
  situation_.baseline_tput = 1;
  EXPECT_EQ(rule(request("run_fusion")), "closing_phase_only_report");
  situation_.closing = false;
  EXPECT_EQ(rule(request("run_fusion")), "phase_incompatible");
}

TEST_F(Spec_1_2_Gate, RolesEmitTheirOwnIntentTypesOnly) {
  const Intent verdict = intent("review_verdict", {{"verdict", "approve"}});
  EXPECT_EQ(rule(verdict), "role");
  situation_.role = "critic";
  EXPECT_EQ(rule(verdict), "");
  EXPECT_EQ(rule(intent("update_state", {{"changes", {{"notes", 1}}}})), "role");
}

TEST_F(Spec_1_2_Gate, ClosingLetsMessagesAlertsAndTheReportPass) {
  situation_.closing = true;
  EXPECT_EQ(rule(intent("send_message", {{"topic", "advice"}})), "");
  EXPECT_EQ(rule(intent("alert", Json::object())), "");
  EXPECT_EQ(rule(intent("propose_action", {{"action_name", "report"}})), "");
  EXPECT_EQ(rule(intent("propose_action", {{"action_name", "explore"}})),
            "closing_phase_only_report");
  EXPECT_EQ(rule(request("trace_analyze")), "closing_phase_only_report");
}

TEST_F(Spec_9, NoWorkIsBegunWithoutTime) {
  situation_.seconds_left = 0;
  EXPECT_EQ(rule(request("trace_analyze")), "time_budget");
  EXPECT_EQ(rule(intent("propose_action", {{"action_name", "report"}})), "");
  EXPECT_EQ(rule(intent("alert", Json::object())), "");
}

TEST_F(Spec_9, KernelActionsAreNoTasks) {
  for (const char* type : {"delegate", "propose_action"}) {
    for (const char* action : {"kernel_opt", "integrate", "gemm_tuning"}) {
      EXPECT_EQ(rule(intent(type, {{"action_name", action}})), "kernel_owned_by_kernel_agent");
    }
    for (const char* action : {"conc_sweep", "roofline", "profile", "replay_warm_recipe",
                               "targeted_build", "framework_agent"}) {
      EXPECT_EQ(rule(intent(type, {{"action_name", action}})), "phase_incompatible");
    }
  }
  EXPECT_EQ(rule(intent("delegate", {{"action_name", "specialist"}})), "");
}

TEST_F(Spec_9, ExploreInKernelNeedsExploring) {
  const Intent explore = intent("delegate", {{"action_name", "explore"}});
  EXPECT_EQ(rule(explore), "");
  situation_.explore_enabled = false;
  EXPECT_EQ(rule(explore), "explore_disabled");
  EXPECT_EQ(rule(explore, {{"INFERENCE_OPTIMIZER_STRICT_PHASE", "0"}}), "");
}

TEST_F(Spec_9, LenientPhasesAreNotedInsteadOfDenied) {
  situation_.phase = "PRELUDE";
  const Verdict verdict =
      judge(request("integrate"), {{"INFERENCE_OPTIMIZER_STRICT_PHASE", "off"}});
  EXPECT_FALSE(verdict.denial);
  ASSERT_EQ(verdict.noted.size(), 1U);
  EXPECT_EQ(verdict.noted[0].rule, "phase_incompatible");
}

TEST_F(Spec_9, LenientPathsAreNotedInsteadOfDenied) {
  const Verdict verdict = judge(request("integrate", {{"patch_path", "/etc/passwd"}}),
                                {{"INFERENCE_OPTIMIZER_STRICT_PATHS", "0"}});
  EXPECT_FALSE(verdict.denial);
  ASSERT_EQ(verdict.noted.size(), 1U);
  EXPECT_EQ(verdict.noted[0].rule, "path_outside_session_dir");
}

TEST_F(Spec_9, FieldsOfTheCoordinatorAreRefusedByName) {
  for (const char* field : {"rebuild_command", "base_tput", "dry_run"}) {
    for (const Json& params :
         {Json{{field, 1}}, Json{{"candidate", {{"deep", {{{field, ""}}}}}}}}) {
      const auto denial = judge(request("integrate", params)).denial;
      ASSERT_TRUE(denial) << field;
      EXPECT_EQ(denial->rule, "payload");
      EXPECT_NE(denial->reason.find(field), std::string::npos);
    }
    Intent flat = request("integrate");
    flat.payload[field] = true;
    EXPECT_EQ(rule(flat), "payload");
    EXPECT_EQ(rule(request("integrate", {{field, nullptr}})), "");
  }
}

TEST_F(Spec_3_2_Gate, WhoeverTypesARequestMaySetThem) {
  situation_.command_line = true;
  for (const char* field : {"rebuild_command", "base_tput", "dry_run"}) {
    EXPECT_EQ(rule(request("integrate", {{field, 1}})), "") << field;
  }
}

TEST_F(Spec_9, PathsOfTheSessionStayInside) {
  const auto& layout = situation_.layout;
  const fs::path inside[] = {layout.session / "x.json", layout.run() / "kernel_candidates.json",
                             layout.kernel_workspace("k1") / "patch", layout.session};
  const fs::path outside[] = {"/etc/passwd",
                              "/",
                              layout.session.parent_path(),
                              layout.session.string() + "-other/x",
                              layout.session / ".." / "two" / "state.json",
                              layout.root / "kernel-agent/runs/two/x",
                              layout.session / "missing/../../../../etc/passwd"};
  for (const char* key : {"trace_input",           "candidates_path", "patch_path",
                          "config_path",           "output_dir",      "workspace",
                          "workspace_path",        "trace_dir",       "main_trace_path",
                          "report_path",           "json_path",       "md_path",
                          "session_dir",           "backup_root",     "manifest_path",
                          "snapshot_dir",          "capture_folder",  "producer_manifest",
                          "apply_checkpoint_path", "artifact_paths"}) {
    for (const fs::path& path : inside) EXPECT_EQ(rule_of_path(key, path.string()), "") << path;
    for (const fs::path& path : outside) {
      EXPECT_EQ(rule_of_path(key, path.string()), "path_outside_session_dir") << key << path;
    }
  }
}

TEST_F(Spec_9, SourcesStayInTrustedRoots) {
  for (const char* key : {"source_file", "framework_source_root", "kernel_repo", "repo",
                          "benchmark_file", "model_path"}) {
    EXPECT_EQ(rule_of_path(key, (folder_ / "tree/kernels.loom").string()), "") << key;
    EXPECT_EQ(rule_of_path(key, (folder_ / "framework/x").string()), "") << key;
    EXPECT_EQ(rule_of_path(key, (situation_.layout.session / "x").string()), "") << key;
    EXPECT_EQ(rule_of_path(key, "/etc/passwd"), "source_file_outside_trusted_scope") << key;
    EXPECT_EQ(rule_of_path(key, "kernels.loom"), "") << key;
    EXPECT_EQ(rule_of_path(key, "../x"), "source_file_outside_trusted_scope") << key;
  }
}

TEST_F(Spec_9, FrameworkRootsOfTheVariableAreTrusted) {
  EXPECT_EQ(rule_of_path("target_file", "/opt/framework/x"), "source_file_outside_trusted_scope");
  const Environment environment(Variables{
      {"INFERENCE_OPTIMIZER_FRAMEWORK_SOURCE_ROOTS", "/opt/framework:relative::/opt/other"}});
  situation_.trusted = trusted_roots(environment, folder_ / "tree");
  EXPECT_EQ(situation_.trusted,
            (std::vector<fs::path>{folder_ / "tree", "/opt/framework", "/opt/other"}));
  EXPECT_EQ(rule_of_path("target_file", "/opt/framework/x"), "");
  EXPECT_EQ(rule_of_path("source_file", "/opt/other/x"), "");
  EXPECT_EQ(rule_of_path("target_file", "/opt/frameworks/x"), "source_file_outside_trusted_scope");
}

TEST_F(Spec_9, TargetsAreSourcesOfTheTreeAndNothingElse) {
  for (const char* key : {"target_file", "patch_write_paths", "resolved_patch_targets"}) {
    EXPECT_EQ(rule_of_path(key, (folder_ / "tree/kernels.loom").string()), "") << key;
    EXPECT_EQ(rule_of_path(key, (situation_.layout.session / "state.json").string()),
              "source_file_outside_trusted_scope")
        << key;
    EXPECT_EQ(rule_of_path(key, "/etc/passwd"), "source_file_outside_trusted_scope") << key;
  }
}

TEST_F(Spec_9, SymbolicLinksAreResolvedBeforeTheyAreCompared) {
  const auto& session = situation_.layout.session;
  fs::create_directory_symlink("/etc", session / "link");
  fs::create_symlink("link/passwd", session / "chain");
  fs::create_symlink("loop", session / "loop");
  std::ofstream(folder_ / "tree" / "real") << "";
  fs::create_symlink("real", folder_ / "tree" / "alias");
  EXPECT_EQ(rule_of_path("patch_path", (session / "link/passwd").string()),
            "path_outside_session_dir");
  EXPECT_EQ(rule_of_path("patch_path", "link/passwd"), "path_outside_session_dir");
  EXPECT_EQ(rule_of_path("patch_path", "chain"), "path_outside_session_dir");
  EXPECT_EQ(rule_of_path("patch_path", "loop"), "path_outside_session_dir");
  EXPECT_EQ(rule_of_path("target_file", "alias"), "");
}

TEST_F(Spec_9, SessionBehindALinkIsStillTheSession) {
  fs::create_directory_symlink(folder_.path(), folder_ / "alias");
  situation_.layout = session::Layout::make(folder_ / "alias", "one").value();
  EXPECT_EQ(rule_of_path("patch_path", (situation_.layout.session / "x").string()), "");
  EXPECT_EQ(rule_of_path("patch_path", (folder_ / "sessions/one/x").string()), "");
}

TEST_F(Spec_9, PathsAreFoundAtAnyDepthAndInLists) {
  const Json bad = "/etc/passwd";
  for (const Json& params :
       {Json{{"candidate", {{"source_file", bad}}}}, Json{{"patch_write_paths", {"a", bad}}},
        Json{{"candidate", {{"rows", {{{"patch_path", bad}}}}}}},
        Json{{"artifact_paths", {{"report", bad}}}}, Json{{"resolved_patch_targets", {{bad}}}}}) {
    EXPECT_NE(rule(request("integrate", params)), "") << params;
  }
  Json deep = bad;
  for (int i = 0; i < 400; ++i) deep = Json{{"x", deep}};
  EXPECT_NE(rule(request("integrate", {{"patch_path", deep}})), "");
  EXPECT_EQ(rule(request("integrate", {{"kernel_id", bad}})), "");
}

TEST_F(Spec_9, DenialNamesThePlaceOfThePath) {
  const auto denial =
      judge(request("integrate", {{"candidate", {{"files", {{{"patch_path", "/x"}}}}}}})).denial;
  ASSERT_TRUE(denial);
  EXPECT_NE(denial->reason.find("params.candidate.files[0].patch_path"), std::string::npos)
      << denial->reason;
}

TEST_F(Spec_9, SentinelsMeanThatThereIsNoPath) {
  for (const char* word :
       {"not found", "none", "n/a", "null", "unknown", "unresolved", "missing", "tbd",
        "<unresolved>", "aiter (vendor)", "triton (vendor)", "", "  None ", "N/A"}) {
    EXPECT_EQ(rule_of_path("source_file", word), "") << word;
    EXPECT_EQ(rule_of_path("target_file", word), "") << word;
  }
}

TEST_F(Spec_9, HostilePathsAreRefused) {
  EXPECT_NE(rule_of_path("patch_path", std::string("/tmp/a\0b", 8)), "");
  EXPECT_NE(rule_of_path("patch_path", std::string(100'000, 'a')), "");
  std::string deep;
  for (int i = 0; i < 1500; ++i) deep += "a/";
  EXPECT_NE(rule_of_path("patch_path", deep), "");
}

TEST_F(Spec_9, CoreFieldsOfTheStateAreImmutable) {
  for (const char* field :
       {"last_trace_analyze", "last_kernel_opt", "last_kernel_opt_dispatch_skip",
        "kernel_opt_task_attempts", "pending_kernel_integrations", "last_collective",
        "collective_attempts", "collective_only_mode", "optimization_stack", "current_best",
        "baseline_tput", "baseline_accuracy", "gain_ledger", "revision", "schema_version"}) {
    EXPECT_EQ(rule(intent("update_state", {{"changes", {{field, 1}, {"notes", "x"}}}})),
              "state_field")
        << field;
  }
  EXPECT_EQ(rule(intent("update_state", {{"changes", {{"notes", "x"}}}})), "");
  EXPECT_EQ(rule(intent("update_state", {{"changes", "x"}})), "payload");
}

TEST_F(Spec_9, LeasesAndBranchesAreRobustness) {
  const Intent extend = intent("extend_lease", {{"task_id", "t"}, {"extra_sec", 60}});
  const Intent prune = intent("prune_branch", {{"family", "f"}, {"reason", "r"}});
  EXPECT_EQ(rule(extend), "robustness_only_source");
  EXPECT_EQ(rule(prune), "robustness_only_source");
  situation_.role = "robustness";
  EXPECT_EQ(rule(extend), "");
  EXPECT_EQ(rule(prune), "");
}

TEST_F(Spec_9, LeaseExtensionAndPruneScopeAreBounded) {
  situation_.role = "robustness";
  for (const Json& extra : {Json(0), Json(3601), Json(-1), Json("60"), Json(1.5), Json(true)}) {
    EXPECT_EQ(rule(intent("extend_lease", {{"task_id", "t"}, {"extra_sec", extra}})),
              "extend_lease_bounds")
        << extra;
  }
  EXPECT_EQ(rule(intent("extend_lease", {{"task_id", "t"}, {"extra_sec", 1}})), "");
  EXPECT_EQ(rule(intent("extend_lease", {{"task_id", "t"}, {"extra_sec", 3600}})), "");
  EXPECT_EQ(rule(intent("prune_branch", {{"scope", "everything"}})), "prune_scope");
  EXPECT_EQ(rule(intent("prune_branch", {{"scope", "queued"}})), "");
}

TEST_F(Spec_9, RecoveryIsRobustnessAndNeedsEvidence) {
  const Intent bare = intent("delegate", {{"action_name", "recover"}});
  EXPECT_EQ(rule(bare), "delegate_action_source");
  situation_.role = "robustness";
  EXPECT_EQ(rule(bare), "delegate_action_evidence");
  EXPECT_EQ(rule(intent("delegate", {{"action_name", "recover"}, {"evidence", "log"}})), "");
  EXPECT_EQ(rule(intent("delegate", {{"action_name", "specialist"}})), "delegate_action_source");
}

TEST_F(Spec_9, SameWorkIsNotStartedTwice) {
  situation_.task_state = [](const std::string& key) {
    return key == "running" ? "running" : key == "done" ? "succeeded" : "";
  };
  const auto with_key = [](const std::string& key) {
    return intent("delegate", {{"action_name", "specialist"}, {"idempotency_key", key}});
  };
  EXPECT_EQ(rule(with_key("new")), "");
  EXPECT_EQ(rule(with_key("running")), "duplicate_idempotency_key_running");
  EXPECT_EQ(rule(with_key("done")), "duplicate_idempotency_key");
}

TEST_F(Spec_9, RequestNamesNoOtherTool) {
  EXPECT_EQ(rule(request("integrate", {{"tool", "rm"}})), "tool_whitelist");
  EXPECT_EQ(rule(request("integrate", {{"tools", {"integrate", "rm"}}})), "tool_whitelist");
  EXPECT_EQ(rule(request("integrate", {{"tool", "integrate"}})), "");
}

TEST_F(Gate, EveryRuleOfTheTableIsOneThatJudges) {
  EXPECT_EQ(PolicyGate::rules().size(), 22U);
  EXPECT_EQ(PolicyGate::rules().front(), "role");
  EXPECT_EQ(PolicyGate::rules().back(), "path_scope");
}

TEST(Spec_1_2_Denials, HistoryAndStreakGrowAndTheRequesterSeesThemOnce) {
  Json state = Json::object();
  const Intent integrate = {"request", {{"target_agent", "kernel_agent"}, {"kind", "integrate"}}};
  const Denial denial = {"execution_order", "no baseline", "wait"};
  record_denial(state, "orchestration", integrate, denial);
  record_denial(state, "orchestration", integrate, denial);
  record_denial(state, "critic", integrate, {"request_role", "", ""});
  EXPECT_EQ(state["policy_denial_streaks"]["integrate:execution_order"], 2);
  const Json open = open_denials(state, "orchestration");
  ASSERT_EQ(open.size(), 2U);
  EXPECT_EQ(open[0].at("rule"), "execution_order");
  EXPECT_EQ(open[0].at("action"), "integrate");
  EXPECT_EQ(open[0].at("hint"), "wait");
  complete_turn(state, "orchestration", open);
  EXPECT_TRUE(open_denials(state, "orchestration").empty());
  EXPECT_EQ(open_denials(state, "critic").size(), 1U);
  end_streaks(state, "integrate");
  EXPECT_TRUE(state["policy_denial_streaks"].empty());
  record_denial(state, "orchestration", integrate, denial);
  EXPECT_EQ(open_denials(state, "orchestration").size(), 1U);
}

TEST(Spec_1_2_Denials, ObservationGoesToTheSourceBesidesForExecutionOrder) {
  const Intent integrate = {"request", {{"kind", "integrate"}}};
  EXPECT_FALSE(denial_message("orchestration", integrate, {"execution_order", "", ""}));
  const auto message = denial_message("orchestration", integrate, {"phase_incompatible", "r", "h"});
  ASSERT_TRUE(message);
  EXPECT_EQ(message->from_agent, "coordinator");
  EXPECT_EQ(message->to_agent, "orchestration");
  EXPECT_EQ(message->topic, "observation");
  EXPECT_EQ(message->priority, 0);
  EXPECT_EQ(message->payload, Json({{"kind", "policy_denied"},
                                    {"intent_type", "request"},
                                    {"rule", "phase_incompatible"},
                                    {"hint", "h"},
                                    {"reason", "r"}}));
}

TEST(Spec_1_2_Denials, RecordsAreBounded) {
  Json state = Json::object();
  for (int i = 0; i < 500; ++i) {
    const Intent odd = {"request", {{"kind", std::to_string(i) + std::string(1000, 'x')}}};
    record_denial(state, "orchestration", odd, {"request_target", "", ""});
  }
  EXPECT_EQ(state["policy_denial_history"].size(), 200U);
  EXPECT_EQ(state["policy_denial_history"].back().at("seq"), 500);
  EXPECT_LE(state["policy_denial_streaks"].size(), 200U);
}

}  // namespace
}  // namespace hyperloom::policy
