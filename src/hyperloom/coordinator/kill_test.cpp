// The router's process is killed at each of its state-changing steps, one after the other, and
// started again.
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/wait.h>

#include <set>
#include <sstream>

#include "hyperloom/coordinator/intent_router.h"
#include "hyperloom/core/testing.h"
#include "loom/base/file.h"

extern char** environ;  // NOLINT(readability-redundant-declaration): not in every <unistd.h>

namespace hyperloom::coordinator {
namespace {

constexpr const char* kFolder = "HYPERLOOM_KILL_TEST_FOLDER";

session::Layout layout_in(const std::string& folder) {
  return session::Layout::make(folder, "one").value();
}

session::Session open_session(const session::Layout& layout) {
  auto resumed = session::Session::resume(layout);
  if (resumed) return std::move(*resumed);
  return session::Session::create(layout, Json::object(), Json::object()).value();
}

Json turn_of(int number) {
  const Json integrate = {{"intent_type", "request"},
                          {"payload",
                           {{"target_agent", "kernel_agent"},
                            {"kind", "integrate"},
                            {"params", {{"kernel_id", "k" + std::to_string(number)}}}}}};
  return {{"intents", {integrate}}};
}

// A session of two turns, from where it stands: what the test below kills.
void run_session(const std::string& folder) {
  const session::Layout layout = layout_in(folder);
  session::Session session = open_session(layout);
  const Environment environment(std::map<std::string, std::string>{});
  const auto database = bus::Database::open(layout.database(), environment).value();
  bus::Bus bus(database);
  bus::Tasks tasks(database);
  session::SharedState& state = session.state();
  Services services{session, bus, tasks, environment};
  services.phase = [] { return std::string("KERNEL_AGENT"); };
  services.handlers["integrate"] = [&](const Json& payload) -> Json {
    const std::string kernel = text_of(payload, "kernel_id");
    (void)session.log_decision(kernel, {{"id", kernel}, {"decision", "KEEP"}, {"reason", "x"}})
        .value();
    return {{"status", "ok"}, {"kernel_id", kernel}};
  };
  services.record["integrate"] = [&](const Json&, const Json& result) {
    (void)state
        .update("test.record",
                [&](Json& document) { document["kept"][text_of(result, "kernel_id")] = true; })
        .value();
  };
  IntentRouter router(services);
  if (!state.get("baseline_tput").is_number() || state.get("baseline_tput") == 0.0) {
    (void)state.update("test.baseline", [](Json& document) { document["baseline_tput"] = 1.0; })
        .value();
  }
  const auto interrupted = router.answer_interrupted().value();
  for (const Redispatch& again : interrupted) (void)router.redispatch(again).value();
  for (;;) {
    const int done = static_cast<int>(number_of(Json{{"n", state.get("turns")}}, "n"));
    if (done >= 2) return;
    (void)router.handle("orchestration", turn_of(done)).value();
    (void)state.update("test.turn", [&](Json& document) { document["turns"] = done + 1; }).value();
  }
}

// Not a test of its own: the process that is killed.
TEST(KillTest, DISABLED_Session) {
  const char* folder = std::getenv(kFolder);
  if (folder == nullptr) GTEST_SKIP() << kFolder << " names no folder";
  run_session(folder);
}

// Runs the session in a process of its own; whether it came to its end. `step` 0: undisturbed.
bool run_process(const std::string& folder, int step) {
  std::vector<std::string> words;
  for (char** entry = environ; *entry != nullptr; ++entry) words.emplace_back(*entry);
  words.push_back(std::string(kFolder) + "=" + folder);
  words.push_back("HYPERLOOM_FAULT_LOG=" + folder + "/steps");
  if (step > 0) words.push_back("HYPERLOOM_FAULT_POINT=" + std::to_string(step));
  std::vector<char*> environment;
  for (std::string& word : words) environment.push_back(word.data());
  environment.push_back(nullptr);
  std::string program = "/proc/self/exe";
  std::string filter = "--gtest_filter=KillTest.DISABLED_Session";
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
  EXPECT_EQ(WEXITSTATUS(status), 0) << "killed at step " << step;
  return true;
}

// Ids, decisions and reasons in order.
std::string decisions_of(const session::Layout& layout) {
  std::istringstream lines(loom::read_file(layout.decision_log().string()).value_or(""));
  std::string all;
  for (std::string line; std::getline(lines, line);) {
    const Json row = parse_json(line, "row").value();
    all +=
        text_of(row, "id") + " " + text_of(row, "decision") + " " + text_of(row, "reason") + "\n";
  }
  return all;
}

void check_end(const std::string& folder, int step) {
  const session::Layout layout = layout_in(folder);
  const auto view = session::Session::look(layout);
  ASSERT_TRUE(view) << step;
  EXPECT_EQ(view->state.at("turns"), 2) << step;
  EXPECT_EQ(view->state.at("kept").size(), 2U) << step;
  EXPECT_EQ(decisions_of(layout), "k0 KEEP x\nk1 KEEP x\n") << step;
  const bus::Bus bus(
      bus::Database::open(layout.database(), Environment(std::map<std::string, std::string>{}))
          .value());
  EXPECT_TRUE(bus.unanswered_requests()->empty()) << step;
  std::set<std::string> answered;
  const auto rows = bus.tail(SIZE_MAX).value();
  for (const bus::Message& row : rows) {
    if (row.topic != "response") continue;
    EXPECT_TRUE(answered.insert(row.in_reply_to).second) << "answered twice, step " << step;
  }
  size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(layout.session)) {
    EXPECT_FALSE(entry.path().string().ends_with(".tmp")) << entry.path();
    ++files;
  }
  EXPECT_GT(files, 0U);
}

TEST(Spec_12_Kills, KilledAtAnyStepTheResumedSessionDecidesTheSame) {
  int step = 0;
  for (bool ended = false; !ended;) {
    const TempFolder folder;
    ended = run_process(folder.path().string(), ++step);
    ASSERT_TRUE(ended || run_process(folder.path().string(), 0)) << step;
    check_end(folder.path().string(), step);
    ASSERT_LT(step, 200);
  }
  EXPECT_GT(step, 15) << "there are that many steps";
}

}  // namespace
}  // namespace hyperloom::coordinator
