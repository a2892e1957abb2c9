// Whole sessions on a fake workload, whose sources say what every variant of it measures.
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <set>

#include "hyperloom/coordinator/session_testing.h"
#include "hyperloom/report/report.h"
#include "loom/base/file.h"

extern char** environ;  // NOLINT(readability-redundant-declaration): not in every <unistd.h>

namespace hyperloom::coordinator {
namespace {

void expect_improved(const SessionRun& run) {
  EXPECT_TRUE(run.ended->measured);
  EXPECT_TRUE(run.ended->over);
  EXPECT_EQ(run.phases(), (std::vector<std::string>{"PRELUDE", "KERNEL_AGENT", "SWEEP"}));
  const Json report = run.report();
  EXPECT_EQ(report["outcome"], "improved") << report.dump(2);
  EXPECT_EQ(report["kept"].size(), 1u);
  // 1,010,000 ns become 510,000 ns.
  EXPECT_NEAR(number_of(report, "gain_pct"), 98.04, 0.5);
  EXPECT_NE(run.session.read("tree/model.loom").find("config.def @tile = 4"), std::string::npos);
}

TEST_F(SessionTest, ForgeImprovesTheHotKernelAndKeepsIt) {
  const auto made = run({.variables = kForge, .options = quick()});
  expect_improved(*made);
}

TEST_F(SessionTest, GeakSearchesTheWholeProgramByDefault) {
  const auto made = run({.variables = kGeak, .options = quick()});
  expect_improved(*made);
  EXPECT_EQ(text_of(made->session.state()["geak_pending"], "status"), "judged");
}

TEST_F(SessionTest, NoGainIsAResultOfItsOwn) {
  std::string model = kModel;
  model.replace(model.find("tile 4 work 0.5"), 15, "tile 4 work 1.0");
  const auto made = run({.variables = kForge, .options = quick(), .model = model});
  EXPECT_TRUE(made->ended->measured);
  EXPECT_EQ(made->report()["outcome"], "no_gain");
  EXPECT_EQ(made->session.read("tree/model.loom"), model);
}

TEST_F(SessionTest, AProgramThatCannotBeMeasuredEndsWithItsReason) {
  const auto made = run(
      {.variables = kForge, .options = quick(), .model = std::string(kModel) + "// fake: crash\n"});
  EXPECT_FALSE(made->ended->measured);
  EXPECT_NE(made->ended->stop_reason.find("workload_crashed"), std::string::npos)
      << made->ended->stop_reason;
  EXPECT_EQ(made->report()["outcome"], "nothing_measured");
}

TEST_F(SessionTest, WithoutKernelWorkThePhaseIsSkipped) {
  Plan setup{.variables = kForge, .options = quick()};
  setup.options.kernel_enabled = false;
  const auto made = run(setup);
  EXPECT_EQ(made->phases(), (std::vector<std::string>{"PRELUDE", "SWEEP"}));
  EXPECT_EQ(made->session.state()["phase_history"][0]["reason"], "no_kernel_skipped");
  EXPECT_EQ(made->report()["outcome"], "no_gain");
}

// --- the entry of KERNEL ------------------------------------------------------------------------

TEST_F(SessionTest, Spec_2_3_EveryResponseAnswersARequestRowOfItsOwn) {
  const auto made = run({.variables = kForge, .options = quick()});
  std::map<std::string, bus::Message> requests;
  std::set<std::string> answered;
  for (const bus::Message& row : made->rows()) {
    if (row.topic == "request") requests[row.msg_id] = row;
  }
  size_t entry_batches = 0;
  for (const bus::Message& row : made->rows()) {
    if (row.topic != "response") continue;
    ASSERT_TRUE(requests.contains(row.in_reply_to));
    EXPECT_EQ(row.payload["in_reply_to"], row.in_reply_to);
    EXPECT_TRUE(answered.insert(row.in_reply_to).second);
    const bus::Message& request = requests[row.in_reply_to];
    EXPECT_EQ(text_of(row.payload, "kind"), text_of(request.payload, "kind") + "_done");
    if (text_of(request.payload, "source") == "kernel_entry_auto") ++entry_batches;
  }
  EXPECT_EQ(answered.size(), requests.size());
  EXPECT_GE(entry_batches, 2u);  // the batch and its integration at least
}

TEST_F(SessionTest, Spec_4_1_TheSharedTailRunsWhetherGemmTuningIsDueOrNot) {
  auto variables = kForge;
  variables["INFERENCE_OPTIMIZER_SKIP_GEMM_TUNING"] = "1";
  const auto made = run({.variables = variables, .options = quick()});
  EXPECT_EQ(made->not_run("run_gemm_tuning"), "skip_switch");
  EXPECT_EQ(made->not_run("run_fusion"), "not_available");
  EXPECT_EQ(made->not_run("run_collective"), "single_rank");
  EXPECT_EQ(made->report()["outcome"], "improved");
}

TEST_F(SessionTest, Spec_4_2_TheSwitchOfTheBatchLeavesRequestsAlone) {
  Plan setup{.variables = kForge, .options = quick()};
  setup.options.auto_kernel_opt = false;
  setup.envelopes = {kSilent, kSilent, kSilent, asks("run_optimization", {{"kernel_id", "k001"}}),
                     hints("skip_to_sweep")};
  const auto made = run(setup);
  EXPECT_EQ(made->not_run("kernel_opt_batch"), "switched_off");
  EXPECT_EQ(made->report()["outcome"], "improved") << made->report().dump(2);
}

TEST_F(SessionTest, Spec_4_1_CollectiveOnlyRunsThatLaneAlone) {
  auto variables = kForge;
  variables["HYPERLOOM_COLLECTIVE_ONLY"] = "1";
  const auto made = run({.variables = variables, .options = quick()});
  EXPECT_EQ(made->session.state()["collective_only_mode"], true);
  EXPECT_EQ(made->not_run("run_collective"), "single_rank");
  EXPECT_EQ(made->not_run("run_fusion"), "");
  EXPECT_EQ(made->report()["outcome"], "no_gain");
}

TEST_F(SessionTest, Spec_14_CollectiveOnlyModeFollowsEveryStart) {
  auto variables = kForge;
  variables["HYPERLOOM_COLLECTIVE_ONLY"] = "1";
  run({.variables = variables, .options = quick()});
  const auto again = run({.variables = kForge, .options = quick()});
  EXPECT_EQ(again->session.state()["collective_only_mode"], false);
}

TEST_F(SessionTest, Spec_14_WithoutABaselineEveryKindButTheAnalysisIsDenied) {
  const auto transcript = folder_.path() / "transcript.jsonl";
  std::ofstream file(transcript);
  for (const char* kind :
       {"integrate", "run_optimization", "run_collective", "run_fusion", "kernel_opt"}) {
    file
        << R"({"intents":[{"intent_type":"request","payload":{"target_agent":"kernel_agent","kind":")"
        << kind << R"(","params":{}}}]})" << "\n";
  }
  file.close();
  Plan setup{
      .variables = kForge, .options = quick(), .model = std::string(kModel) + "// fake: crash\n"};
  setup.options.transcript = transcript.string();
  const auto made = run(setup);
  const Json state = made->session.state();
  ASSERT_TRUE(state["policy_denial_history"].is_array());
  for (const Json& row : state["policy_denial_history"]) {
    EXPECT_EQ(row["rule"], "execution_order");
  }
  for (const bus::Message& row : made->rows()) EXPECT_NE(row.topic, "request");
}

TEST_F(SessionTest, IR3_EveryKeepIsIntegratedWithoutBeingAskedFor) {
  const auto made = run({.variables = kForge, .options = quick()});
  const Json state = made->session.state();
  ASSERT_EQ(state["pending_kernel_integrations"].size(), 1u);
  for (const auto& [id, record] : state["pending_kernel_integrations"].items()) {
    EXPECT_NE(text_of(record, "status"), "pending") << id;
  }
  EXPECT_EQ(made->session.decisions().size(), 1u);
}

TEST_F(SessionTest, AStopEndsWithAReportAndAResumeGoesOn) {
  {
    task::FakeSession session(folder_.path());
    session.variables = kForge;
    session.write("tree/model.loom", kModel);
    session.recording = folder_.path() / "measured.jsonl";
    session.start({"model.loom"});
    const Json initial = initial_state(session.workload(), quick(), Environment(kForge));
    session.change([&](Json& state) { state.update(initial); });
    session.script().before = [&](const std::string& call) {
      if (call.starts_with("kernel_ns")) session.stop.request_stop();
    };
    bus::Tasks tasks(bus::Database::open(session.layout().database(), Environment(kForge)).value());
    std::vector<std::unique_ptr<agent::Orchestrator>> roles;
    roles.push_back(agent::scripted(""));
    const task::Context context = session.context();
    const auto ended = Coordinator(context, tasks, quick(), std::move(roles)).run();
    ASSERT_TRUE(ended.has_value());
    EXPECT_FALSE(ended->over);
    EXPECT_EQ(ended->stop_reason, "interrupted");
    EXPECT_TRUE(std::filesystem::exists(session.layout().reports() / "report.md"));
    EXPECT_EQ(session.read("tree/model.loom"), kModel);
  }
  const auto made = run({.variables = kForge, .options = quick()});
  EXPECT_EQ(made->report()["outcome"], "improved") << made->report().dump(2);
  EXPECT_EQ(made->report()["stop_reason"], "");
}

// --- kills --------------------------------------------------------------------------------------

constexpr const char* kFolder = "HYPERLOOM_SESSION_KILL_FOLDER";
constexpr const char* kOrder = "HYPERLOOM_SESSION_KILL_ORDER";

// Not a test of its own: the process that is killed.
TEST(SessionKill, DISABLED_Session) {
  const char* folder = std::getenv(kFolder);
  const char* order = std::getenv(kOrder);
  if (folder == nullptr || order == nullptr) GTEST_SKIP() << kFolder << " names no folder";
  ::alarm(200);  // a session that does not end is a failure, not a wait
  const SessionRun made(
      folder, {.variables = std::string(order) == "forge" ? kForge : kGeak, .options = quick()});
  ASSERT_TRUE(made.ended.has_value()) << made.ended.error().message;
  EXPECT_TRUE(made.ended->over);
}

bool run_process(const std::filesystem::path& folder, const std::string& order, int step) {
  std::vector<std::string> words;
  for (char** entry = environ; *entry != nullptr; ++entry) words.emplace_back(*entry);
  words.push_back(std::string(kFolder) + "=" + folder.string());
  words.push_back(std::string(kOrder) + "=" + order);
  words.push_back("HYPERLOOM_FAULT_LOG=" + (folder / "steps").string());
  if (step > 0) words.push_back("HYPERLOOM_FAULT_POINT=" + std::to_string(step));
  std::vector<char*> environment;
  for (std::string& word : words) environment.push_back(word.data());
  environment.push_back(nullptr);
  std::string program = "/proc/self/exe";
  std::string filter = "--gtest_filter=SessionKill.DISABLED_Session";
  std::string disabled = "--gtest_also_run_disabled_tests";
  std::string brief = "--gtest_brief=1";
  char* arguments[] = {program.data(), filter.data(), disabled.data(), brief.data(), nullptr};
  pid_t child = 0;
  if (::posix_spawn(&child, program.c_str(), nullptr, nullptr, arguments, environment.data()) !=
      0) {
    ADD_FAILURE() << "the process does not start";
    return true;
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  if (!WIFEXITED(status)) return false;
  EXPECT_EQ(WEXITSTATUS(status), 0) << "step " << step;
  return true;
}

// What has to be the same after a kill and a resume.
struct End {
  std::string decisions;
  std::string tree;
  std::string outcome;
  bool operator==(const End&) const = default;
};

End end_of(const std::filesystem::path& folder) {
  const session::Layout layout = session::Layout::make(folder / "data", "s1").value();
  End end;
  std::ifstream rows(layout.decision_log());
  for (std::string line; std::getline(rows, line);) {
    const Json row = parse_json(line, "row").value();
    end.decisions +=
        text_of(row, "id") + " " + text_of(row, "decision") + " " + text_of(row, "reason") + "\n";
  }
  end.tree = loom::read_file((folder / "tree" / "model.loom").string()).value_or("");
  end.outcome = text_of(read_json(layout.reports() / "report.json").value_or(Json()), "outcome");
  const bus::Bus bus(
      bus::Database::open(layout.database(), Environment(std::map<std::string, std::string>{}))
          .value());
  EXPECT_TRUE(bus.unanswered_requests()->empty());
  return end;
}

class Spec_12_Kills : public testing::TestWithParam<const char*> {};

// Killed at each of its state-changing steps and resumed on the recorded measurements, the session
// decides as the undisturbed one, and leaves the same tree. LOOM_KILL_STRIDE=1 takes every step.
TEST_P(Spec_12_Kills, TheResumedSessionDecidesTheSame) {
  const TempFolder base;
  // Ids are made of paths, too, so every run has the same ones.
  const std::filesystem::path folder = base.path() / "run";
  std::filesystem::create_directory(folder);
  ASSERT_TRUE(run_process(folder, GetParam(), 0));
  const End expected = end_of(folder);
  EXPECT_EQ(expected.outcome, "improved");
  std::ifstream log(folder / "steps");
  const auto steps = std::count(std::istreambuf_iterator<char>(log), {}, '\n');
  ASSERT_GT(steps, 40);
  std::filesystem::copy_file(folder / "measured.jsonl", base.path() / "measured.jsonl");
  const char* wanted = std::getenv("LOOM_KILL_STRIDE");
  const long stride = wanted != nullptr ? std::max(1L, std::strtol(wanted, nullptr, 10)) : 13;
  for (long step = 1; step <= steps; step += stride) {
    SCOPED_TRACE("step " + std::to_string(step));
    std::filesystem::remove_all(folder);
    std::filesystem::create_directory(folder);
    std::filesystem::copy_file(base.path() / "measured.jsonl", folder / "measured.jsonl");
    if (!run_process(folder, GetParam(), static_cast<int>(step))) {
      ASSERT_TRUE(run_process(folder, GetParam(), 0));
    }
    const End end = end_of(folder);
    ASSERT_EQ(end.decisions, expected.decisions);
    ASSERT_EQ(end.tree, expected.tree);
    ASSERT_EQ(end.outcome, expected.outcome);
  }
}

INSTANTIATE_TEST_SUITE_P(Orders, Spec_12_Kills, testing::Values("forge", "geak"));

}  // namespace
}  // namespace hyperloom::coordinator
