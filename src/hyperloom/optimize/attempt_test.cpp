#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <regex>
#include <string>

#include "hyperloom/core/process.h"
#include "hyperloom/optimize/attempt_record.h"
#include "hyperloom/optimize/bundle.h"
#include "hyperloom/optimize/guards.h"
#include "hyperloom/optimize/run_files.h"
#include "hyperloom/optimize/select.h"
#include "hyperloom/optimize/session_testing.h"

namespace hyperloom::optimize {
namespace {

class Attempts : public SessionTest {
 protected:
  void SetUp() override {
    SessionTest::SetUp();
    use_forge();
    add_fast_kernel(1);
  }
};
using Spec_6_1 = Attempts;
using Spec_6_2 = Attempts;
using Spec_6_3 = Attempts;
using Spec_6_5 = Attempts;
using Spec_1_6 = Attempts;

// A backend that does one thing besides its work.
class Meddler final : public Backend {
 public:
  explicit Meddler(std::function<void(Attempt&)> meddle) : meddle_(std::move(meddle)) {}
  std::string name() const override { return "forge"; }
  Json configuration(const task::Context& context) const override {
    return forge_->configuration(context);
  }
  Outcome optimize(Attempt& attempt) override {
    Outcome outcome = forge_->optimize(attempt);
    meddle_(attempt);
    return outcome;
  }

 private:
  std::function<void(Attempt&)> meddle_;
  std::unique_ptr<Backend> forge_ = make_forge();
};

TEST_F(Spec_6_1, IdsAreDerivedAndDifferForEachAttempt) {
  open();
  const Json result = optimize();
  const Json again = optimize({{"kernel_id", "k001"}});
  const std::string run = result["run_id"];
  const std::string attempt = result["attempts"][0]["attempt_id"];
  EXPECT_TRUE(std::regex_match(run, std::regex("ko-[0-9a-f]{8}"))) << run;
  EXPECT_TRUE(std::regex_match(attempt, std::regex("forge-[0-9a-f]{8}"))) << attempt;
  EXPECT_NE(again["run_id"], result["run_id"]);
  EXPECT_EQ(derived_id("ko", "s", "key", 0), derived_id("ko", "s", "key", 0));
  EXPECT_NE(derived_id("ko", "s", "key", 0), derived_id("ko", "s", "key", 1));
}

// Section 14: "KERNEL_OPT_BACKEND_ORDER = ...".
TEST(Spec_6_1_Backends, OnlyTheExactWordSelectsForge) {
  const auto selected = [](const char* value) {
    return selected_backend(with({{"KERNEL_OPT_BACKEND_ORDER", value}}));
  };
  EXPECT_EQ(selected("forge"), "forge");
  for (const char* value : {"Forge", " forge", "forge ", "forge,geak", "", "geak", "FORGE"}) {
    EXPECT_EQ(selected(value), "geak") << '\'' << value << '\'';
  }
  EXPECT_EQ(selected_backend(kDefault), "geak");
}

TEST_F(Spec_6_1, HintsChangeNothingAndAreWarnedOf) {
  values_["GEMM_TUNING_BACKEND"] = "geak";
  open();
  const Json result = optimize({{"backends", {"geak", "forge"}}});
  EXPECT_EQ(result["selected_backends"], Json{"forge"});
  ASSERT_EQ(result["warnings"].size(), 1U);
  EXPECT_EQ(result["warnings"][0]["code"], "backend_hint_ignored");
  EXPECT_EQ(result["backend_selection"]["ignored_hints"], Json{"geak"});
}

TEST_F(Spec_6_1, BackendThatIsNotInstalledChangesNoLedger) {
  backends_.clear();
  open();
  const Json result = optimize();
  EXPECT_EQ(result["status"], "failed");
  EXPECT_EQ(result["error_class"], "not_available");
  EXPECT_TRUE(session_->state().get("kernel_opt_task_attempts").empty());
  EXPECT_TRUE(attempt_rows().empty());
}

TEST_F(Spec_6_1, RowThatCannotBeRoutedExitsEarly) {
  const Json candidates = {{"hot_kernels", {{{"kernel_id", "k001"}, {"name", "n"}}}}};
  const auto exit = early_exit(candidates, "k1");
  ASSERT_TRUE(exit);
  EXPECT_EQ((*exit)["status"], "skipped");
  EXPECT_EQ((*exit)["reason"], "non_routable_candidate");
  EXPECT_EQ(decision_of(*exit), "REVERT");
}

TEST_F(Spec_6_2, AttemptLeavesItsRowPromptAndOutput) {
  candidates_["hot_kernels"][0]["bound_type"] = "memory";
  open();
  const Json result = optimize();
  const auto rows = attempt_rows();
  ASSERT_EQ(rows.size(), 1U);
  const Json& made = rows[0];
  for (const char* field : {"attempt_id",
                            "backend",
                            "status",
                            "error_type",
                            "returncode",
                            "skipped",
                            "timed_out",
                            "salvaged",
                            "best_commit",
                            "forge_result",
                            "flydsl_applyback",
                            "kb_experience",
                            "pristine_baseline_ms",
                            "search_start_ms",
                            "best_ms",
                            "mean_case_speedup",
                            "search_start_mean_case_speedup",
                            "total_improved",
                            "incremental_improved",
                            "improved",
                            "improved_during_search",
                            "elapsed_s",
                            "prompt_path",
                            "optimized_path",
                            "stdout_tail",
                            "created_at",
                            "backend_paths",
                            "user_specified_backends",
                            "benchmark_available"}) {
    EXPECT_TRUE(made.contains(field)) << field;
  }
  EXPECT_EQ(made["status"], "completed");
  EXPECT_EQ(made["returncode"], 0);
  EXPECT_EQ(made["pristine_baseline_ms"], 0.001);
  EXPECT_EQ(made["best_ms"], 0.0005);
  EXPECT_EQ(made["mean_case_speedup"], 2.0);
  EXPECT_EQ(made["total_improved"], true);
  const std::string id = made["attempt_id"];
  const fs::path run = layout_.run();
  EXPECT_EQ(made["prompt_path"], (run / "prompts" / (id + ".md")).string());
  EXPECT_EQ(made["optimized_path"], (run / "optimized" / (id + "_stdout.log")).string());
  const std::string prompt = read(run / "prompts" / (id + ".md"));
  EXPECT_NE(prompt.find("fake: kernel k1"), std::string::npos);
  EXPECT_NE(prompt.find("(4,4)f32"), std::string::npos);
  EXPECT_NE(prompt.find("Memory bound"), std::string::npos);
  EXPECT_NE(prompt.find("tile1: 4 | 8"), std::string::npos);
  EXPECT_NE(read(run / "optimized" / (id + "_stdout.log")).find("2.0000x"), std::string::npos);
}

TEST_F(Spec_6_2, RowThatAKillLeftIsNotWrittenTwice) {
  open();
  ASSERT_TRUE(append_attempt(layout_, {{"attempt_id", "forge-1"}}));
  ASSERT_TRUE(append_attempt(layout_, {{"attempt_id", "forge-2"}}));
  ASSERT_TRUE(append_attempt(layout_, {{"attempt_id", "forge-1"}}));
  EXPECT_EQ(attempt_rows().size(), 2U);
}

TEST(Spec_6_2_Status, FollowsReturnCodeAndEvidence) {
  EXPECT_EQ(attempt_status(0, false, ""), "completed");
  EXPECT_EQ(attempt_status(124, false, ""), "timeout");
  EXPECT_EQ(attempt_status(124, true, ""), "partial");
  EXPECT_EQ(attempt_status(1, false, ""), "failed");
  EXPECT_EQ(attempt_status(1, true, ""), "partial");
  const std::string denied = "authentication failed\n";
  EXPECT_EQ(attempt_status(1, true, denied + denied), "partial");
  EXPECT_EQ(attempt_status(1, true, denied + denied + denied), "failed");
}

// Section 14: "backend changes its configuration".
TEST_F(Spec_6_2, IR_7_ChangedConfigurationFailsTheAttempt) {
  backends_ = {std::make_shared<Meddler>([](Attempt& attempt) {
    ASSERT_EQ(::chmod(attempt.config.c_str(), 0644), 0);
    std::ofstream(attempt.config) << "{\"most\": 1}";
  })};
  open();
  const Json result = optimize();
  EXPECT_EQ(result["status"], "failed");
  EXPECT_EQ(result["error_class"], "backend_config_changed");
  EXPECT_EQ(attempt_rows().at(0)["status"], "failed");
  EXPECT_EQ(attempt_rows().at(0)["error_type"], "backend_config_changed");
  EXPECT_TRUE(session_->state().get("pending_kernel_integrations").empty());
}

TEST_F(Spec_6_2, IR_7_ConfigurationIsHandedOverReadOnly) {
  unsigned mode = 0;
  backends_ = {std::make_shared<Meddler>([&](Attempt& attempt) {
    struct stat about{};
    ASSERT_EQ(::stat(attempt.config.c_str(), &about), 0);
    mode = about.st_mode & 0777U;
  })};
  open();
  optimize();
  EXPECT_EQ(mode, 0444U);
}

TEST_F(Spec_1_6, IR_2_TouchedTreeFailsTheAttempt) {
  backends_ = {std::make_shared<Meddler>(
      [&](Attempt&) { std::ofstream(tree() / "1.loom", std::ios::app) << "// touched\n"; })};
  open();
  const Json result = optimize();
  EXPECT_EQ(result["status"], "failed");
  EXPECT_EQ(result["error_class"], "tree_drift");
  EXPECT_EQ(decision_of(result), "");
}

TEST_F(Spec_1_6, IR_2_TreeThatIsNotTheAnalysedOneFailsTheAttempt) {
  open();
  ASSERT_TRUE(session_->state().update(
      "test", [](Json& state) { state["last_trace_analyze"]["tree_hash"] = "other"; }));
  EXPECT_EQ(optimize()["error_class"], "tree_drift");
}

TEST_F(Spec_1_6, IR_2_AttemptsWorkInCopiesOfTheirOwn) {
  add_fast_kernel(2);
  std::set<fs::path> trees;
  std::mutex mutex;
  backends_ = {std::make_shared<Meddler>([&](Attempt& attempt) {
    const std::lock_guard lock(mutex);
    trees.insert(attempt.tree.root());
    EXPECT_TRUE(attempt.workspace.string().starts_with(
        (layout_.root / "kernel-agent-workspace" / attempt.kernel_id).string()));
  })};
  open();
  optimize();
  EXPECT_EQ(trees.size(), 2U);
  EXPECT_FALSE(trees.contains(tree()));
  for (const fs::path& copy : trees) EXPECT_FALSE(fs::exists(copy)) << "left behind";
}

TEST_F(Spec_6_3, VerificationBuildsWhatWasWrittenDown) {
  backends_ = {std::make_shared<Meddler>([](Attempt& attempt) {
    // What the search left in its copy is not what is verified.
    std::ofstream(attempt.tree.root() / "1.loom") << "// fake: kernel k1 1\n";
  })};
  open();
  EXPECT_EQ(optimize()["verification"]["micro_speedup"], 2.0);
}

TEST_F(Spec_6_3, BundleNamesWhatIsWrittenAndDeleted) {
  open();
  const Json bundle = optimize()["verification"]["best_artifact_bundle"];
  EXPECT_EQ(bundle["type"], "patch_snapshot");
  EXPECT_EQ(bundle["producer"], "forge");
  EXPECT_EQ(bundle["repo_root"], tree().string());
  EXPECT_EQ(bundle["descriptors"], Json::array({{{"op", "write"}, {"path", "1.loom"}}}));
  EXPECT_EQ(bundle["write_paths"], Json({"1.loom"}));
  EXPECT_EQ(bundle["delete_paths"], Json::array());
  for (const char* file : {"producer_manifest", "snapshot_dir", "patch_path"}) {
    EXPECT_TRUE(fs::exists(text_of(bundle, file))) << file;
  }
  EXPECT_EQ(read_bundle(bundle)->files.at("1.loom"),
            read(fs::path(text_of(bundle, "snapshot_dir")) / "1.loom"));
}

TEST_F(Spec_6_3, ClaimThatDoesNotHoldIsReverted) {
  class Liar final : public Backend {
   public:
    std::string name() const override { return "forge"; }
    Json configuration(const task::Context&) const override { return Json::object(); }
    Outcome optimize(Attempt& attempt) override {
      Outcome outcome;
      outcome.measured = true;
      Found found;
      found.change = attempt.space.change({1}).value();
      found.change.files.begin()->second += "// fake: wrong\n";
      found.speedup = 50;
      outcome.best = found;
      return outcome;
    }
  };
  backends_ = {std::make_shared<Liar>()};
  open();
  const Json result = optimize();
  EXPECT_EQ(decision_of(result), "REVERT");
  EXPECT_EQ(result["verification"]["correctness_passed"], false);
}

TEST_F(Spec_6_5, FilesHaveTheirExactNames) {
  open();
  const Json result = optimize();
  const fs::path run = layout_.run();
  const std::string id = result["run_id"];
  for (const fs::path& file :
       {fs::path("optimization_attempts.jsonl"), fs::path("verification/k001.json"),
        fs::path("results/k001.json"), fs::path("logs/kernel_optimization") / (id + ".log"),
        fs::path("status/kernel_optimization") / (id + ".json"),
        fs::path("inputs/candidate_k001.json")}) {
    EXPECT_TRUE(fs::exists(run / file)) << file;
  }
  const Json status = read_json(run / "status/kernel_optimization" / (id + ".json")).value();
  EXPECT_EQ(status["tool"], "kernel_optimization");
  EXPECT_EQ(status["state"], "succeeded");
  EXPECT_EQ(status["current_step"], "done");
  for (const char* field : {"run_id", "pid", "started_at", "updated_at", "log_path",
                            "artifact_paths", "offset_bytes", "last_lines", "error"}) {
    EXPECT_TRUE(status.contains(field)) << field;
  }
  for (const char* field :
       {"tool", "session_id", "run_id", "kernel_id", "source_file", "best_artifact_path",
        "selected_backends", "backend_selection", "attempts", "rag_hits", "xs_memory_hits",
        "verification", "proposal", "cli_log_path", "status_path", "artifact_paths"}) {
    EXPECT_TRUE(result.contains(field)) << field;
  }
}

TEST_F(Spec_6_5, EachRunKeepsItsRecordAndTheNewestIsPointedAt) {
  open();
  const std::string first = optimize()["run_id"];
  const std::string second = optimize({{"kernel_id", "k001"}})["run_id"];
  for (const char* kind : {"verification", "results"}) {
    const fs::path folder = layout_.run() / kind;
    EXPECT_TRUE(fs::exists(folder / "runs" / (first + ".json"))) << kind;
    const Json newest = read_json(folder / "k001.json").value();
    EXPECT_EQ(newest["run_id"], second) << kind;
    EXPECT_EQ(newest["record_path"], (folder / "runs" / (second + ".json")).string()) << kind;
  }
}

TEST_F(Spec_6_5, LogIsNeverASource) {
  for (const char* name : {"a.log", "a.txt", "a.md"}) EXPECT_FALSE(may_be_source(name)) << name;
  EXPECT_TRUE(may_be_source("a.loom"));
  open();
  Change change;
  change.files["notes.md"] = "kernel.def";
  EXPECT_EQ(
      write_bundle(folder_ / "b", tree(), change, "forge", Json::object()).error().error_class,
      "invalid_bundle");
}

TEST_F(Spec_6_5, DryRunWritesAPlaceholderAndTouchesNoLedger) {
  candidates_["hot_kernels"][0].erase("shapes");
  open();
  const Json result = optimize({{"dry_run", true}, {"correctness_passed", true}});
  EXPECT_EQ(decision_of(result), "NEEDS_REVIEW");
  EXPECT_EQ(result["proposal"]["reasons"], Json{"dry_run"});
  EXPECT_EQ(result["verification"]["micro_speedup"], 1.05);
  EXPECT_EQ(result["verification"]["micro_speedup_source"], "dry_run_placeholder");
  EXPECT_EQ(result["verification"]["correctness_source"], "cli_override");
  const std::string attempt = result["attempts"][0]["attempt_id"];
  EXPECT_TRUE(fs::exists(layout_.run() / "optimized" / (attempt + "_optimized.loom")));
  EXPECT_EQ(workload_->script().starts, 0);
  EXPECT_TRUE(session_->state().get("kernel_opt_task_attempts").empty());
  EXPECT_TRUE(session_->state().get("pending_kernel_integrations").empty());
}

TEST_F(Spec_6_5, DryRunNeedsNoSourceOnDisk) {
  candidates_["hot_kernels"][0]["source_file"] = "gone.loom";
  open();
  EXPECT_EQ(optimize()["error_class"], "missing_source_path");
  EXPECT_EQ(optimize({{"dry_run", true}})["status"], "ok");
}

TEST_F(Spec_6_5, GroupOfTheTaskIsInTheResult) {
  Json made = group("tg001", {"k001"});
  made["shape_cases"] = {{{"case_id", "case_001"}}, {{"case_id", "case_002"}}};
  made["identity_route"] = "native";
  candidates_["task_groups"].push_back(made);
  open();
  const Json result = optimize();
  EXPECT_EQ(result["task_group_id"], "tg001");
  EXPECT_EQ(result["task_group_key"], "key-tg001");
  EXPECT_EQ(result["identity_route"], "native");
  EXPECT_EQ(result["task_group_kernel_ids"], Json{"k001"});
  EXPECT_EQ(result["task_group_primary_kernel_id"], "k001");
  EXPECT_EQ(result["task_group_shape_case_count"], 2);
  EXPECT_EQ(result["task_group_shape_case_ids"], (Json{"case_001", "case_002"}));
  EXPECT_TRUE(fs::exists(layout_.run() / "inputs" / "candidate_tg001.json"));
}

TEST_F(Spec_6_5, RunThatLivesIsInFlightAndADeadOneIsNot) {
  open();
  RunFiles files(layout_, "ko-00000001", "k001");
  ASSERT_TRUE(files.step("run_backends"));
  EXPECT_EQ(in_flight_ids(layout_), std::set<std::string>{"k001"});
  EXPECT_EQ(select_candidates(context()).find_skipped("k001")->detail, "in_flight");
  Json status = read_json(files.status_path()).value();
  status["pid_start_time"] = 1;
  ASSERT_TRUE(write_json(files.status_path(), status));
  EXPECT_TRUE(in_flight_ids(layout_).empty()) << "another process had that number";
  ASSERT_TRUE(files.end("succeeded", "", Json::object()));
  EXPECT_TRUE(in_flight_ids(layout_).empty());
}

TEST_F(Spec_6_5, RunThatEndedIsReadOnceUntilItsStatusChanges) {
  open();
  RunFiles files(layout_, "ko-00000001", "k001");
  ASSERT_TRUE(files.end("succeeded", "", Json::object()));
  EXPECT_TRUE(in_flight_ids(layout_).empty());
  Json status = read_json(files.status_path()).value();
  status["state"] = "running";
  const auto time = fs::last_write_time(files.status_path());
  std::ofstream(files.status_path()) << status.dump();
  fs::last_write_time(files.status_path(), time);
  EXPECT_TRUE(in_flight_ids(layout_).empty()) << "the same file with the same time";
  ASSERT_TRUE(files.step("run_backends"));
  ASSERT_TRUE(write_json(files.status_path(), status));
  EXPECT_EQ(in_flight_ids(layout_), std::set<std::string>{"k001"});
}

TEST_F(Spec_6_5, FullDiskIsARecordedFailure) {
  open();
  const FullDisk full(2000);
  const Json result = run_optimization(Json::object(), context(), {}, engines());
  EXPECT_EQ(result["status"], "failed");
  EXPECT_EQ(result["error_class"], "unwritable_file");
}

}  // namespace
}  // namespace hyperloom::optimize
