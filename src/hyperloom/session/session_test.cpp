#include "hyperloom/session/session.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <fstream>

#include "hyperloom/core/testing.h"
#include "loom/base/file.h"

namespace hyperloom::session {
namespace {

std::string read_text(const fs::path& path) {
  return loom::read_file(path.string()).value_or("<missing>");
}

void write_text(const fs::path& path, std::string_view text) {
  std::ofstream(path, std::ios::binary) << text;
}

class Sessions : public testing::Test {
 protected:
  Layout layout(const std::string& id = "one") const {
    return Layout::make(folder_.path(), id).value();
  }
  Session create(const std::string& id = "one") const {
    return Session::create(layout(id), {{"kind", "native"}}, {{"seed", 1}}).value();
  }
  TempFolder folder_;
};

using Spec_12_Locks = Sessions;
using Spec_12_DecisionLog = Sessions;

TEST_F(Sessions, ManifestAndStateAreThereAfterCreate) {
  const Session session = create();
  const Json manifest = read_json(layout().manifest()).value();
  EXPECT_EQ(manifest.at("session_id"), "one");
  EXPECT_EQ(manifest.at("workload").at("kind"), "native");
  EXPECT_EQ(manifest.at("options").at("seed"), 1);
  EXPECT_TRUE(manifest.at("version").is_string());
  EXPECT_TRUE(manifest.at("created_at").is_string());
  const Json state = read_json(layout().state()).value();
  EXPECT_EQ(state.at("schema_version"), 5);
  EXPECT_EQ(state.at("revision"), 0);
  EXPECT_TRUE(state.at("pending_kernel_integrations").is_object());
}

TEST_F(Spec_12_Locks, SecondSessionOnOneFolderIsRefusedWithItsOwner) {
  const Session session = create();
  for (const auto& second : {Session::resume(layout()), Session::create(layout(), {}, {})}) {
    ASSERT_FALSE(second);
    EXPECT_EQ(second.error().error_class, "session_already_running");
    EXPECT_NE(second.error().message.find(std::to_string(::getpid())), std::string::npos);
  }
}

TEST_F(Spec_12_Locks, LockIsHeldAcrossProcesses) {
  const Session session = create();
  const pid_t child = ::fork();
  if (child == 0) {
    // The child has the parent's lock file open; what counts is that a new opening is refused.
    const auto second = Session::resume(layout());
    ::_exit(!second && second.error().error_class == "session_already_running" ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

TEST_F(Spec_12_Locks, LockOfADeadProcessIsFree) {
  const pid_t child = ::fork();
  if (child == 0) {
    const Session session = create();
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  ASSERT_EQ(status, 0);
  EXPECT_TRUE(Session::resume(layout()));
}

TEST_F(Spec_12_Locks, LockFileIsPrivateAndSaysWhoHoldsIt) {
  const Session session = create();
  struct stat info{};
  ASSERT_EQ(::stat(layout().lock().c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600U);
  const Json owner = read_json(layout().lock()).value();
  EXPECT_EQ(owner.at("pid"), ::getpid());
  for (const char* field : {"host", "started_at", "heartbeat_at"}) {
    EXPECT_TRUE(owner.at(field).is_string()) << field;
  }
}

TEST_F(Spec_12_Locks, LockFileThatIsALinkIsRefused) {
  fs::create_directories(layout().session);
  write_text(folder_ / "victim", "keep");
  fs::create_symlink(folder_ / "victim", layout().lock());
  const auto session = Session::create(layout(), {}, {});
  ASSERT_FALSE(session);
  EXPECT_EQ(session.error().error_class, "unwritable_file");
  EXPECT_NE(session.error().message.find("symbolic link"), std::string::npos);
  EXPECT_EQ(read_text(folder_ / "victim"), "keep");
}

TEST_F(Sessions, CreateRefusesWhatIsThereAndResumeWhatIsNot) {
  {
    const Session session = create();
  }
  const auto again = Session::create(layout(), Json::object(), Json::object());
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().error_class, "session_exists");
  const auto missing = Session::resume(layout("two"));
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().error_class, "session_not_found");
  EXPECT_FALSE(fs::exists(layout("two").session));
}

TEST_F(Sessions, StartThatWasKilledBeforeTheManifestStartsAfresh) {
  {
    const Session session = create();
  }
  fs::remove(layout().manifest());
  write_text(layout().state(), "{ half");
  write_text(layout().session / "state.json.17.0.tmp", "{");
  const auto again = Session::create(layout(), Json::object(), Json::object());
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_FALSE(fs::exists(layout().session / "state.json.17.0.tmp"));
  EXPECT_EQ(read_json(layout().state()).value().at("revision"), 0);
}

TEST_F(Sessions, LookSeesARunningSessionWithoutItsLock) {
  {
    Session session = create();
    const auto view = Session::look(layout());
    ASSERT_TRUE(view);
    EXPECT_TRUE(view->running);
    EXPECT_EQ(view->owner.at("pid"), ::getpid());
    EXPECT_EQ(view->manifest.at("session_id"), "one");
    EXPECT_EQ(view->state.at("revision"), 0);
    EXPECT_TRUE(session.log_decision("k", {{"decision", "KEEP"}}));
  }
  EXPECT_FALSE(Session::look(layout())->running);
}

TEST_F(Sessions, DamagedFilesAreNamedWithTheirPlace) {
  {
    const Session session = create();
  }
  const std::string manifest = read_text(layout().manifest());
  struct Case {
    fs::path path;
    std::string content, error_class, part;
  };
  const std::string state = read_text(layout().state());
  const Case cases[] = {
      {layout().state(), "{ half", "invalid_json", "state.json:1:"},
      {layout().state(), "[]", "invalid_state", "state.json"},
      {layout().state(), R"({"schema_version": 6, "revision": 1})", "unknown_schema_version", "6"},
      {layout().state(), R"({"schema_version": 5, "revision": -1})", "invalid_state", "revision"},
      {layout().state(), R"({"schema_version": 5, "revision": 1, "optimization_stack": {}})",
       "invalid_state", "optimization_stack"},
      {layout().manifest(), "", "invalid_json", "manifest.json"},
      {layout().manifest(), R"({"schema_version": 1})", "invalid_manifest", "session_id"},
      {layout().manifest(), R"({"schema_version": 9})", "unknown_schema_version", "9"},
      {layout().decision_log(), "{}\n", "invalid_json", "line 1"},
  };
  for (const Case& row : cases) {
    write_text(row.path, row.content);
    const auto session = Session::resume(layout());
    ASSERT_FALSE(session) << row.content;
    EXPECT_EQ(session.error().error_class, row.error_class) << row.content;
    EXPECT_NE(session.error().message.find(row.part), std::string::npos) << session.error().message;
    write_text(layout().state(), state);
    write_text(layout().manifest(), manifest);
    fs::remove(layout().decision_log());
  }
  EXPECT_TRUE(Session::resume(layout()));
}

TEST_F(Sessions, SessionOfAnotherNameIsRefused) {
  {
    const Session session = create();
  }
  fs::rename(layout().session, layout("two").session);
  const auto session = Session::resume(layout("two"));
  ASSERT_FALSE(session);
  EXPECT_EQ(session.error().error_class, "invalid_manifest");
}

TEST_F(Sessions, FolderThatCannotBeMadeIsAClearError) {
  write_text(folder_ / "sessions", "a file in the way");
  const auto session = Session::create(layout(), {}, {});
  ASSERT_FALSE(session);
  EXPECT_EQ(session.error().error_class, "unwritable_file");
  EXPECT_NE(session.error().message.find("sessions"), std::string::npos);
}

TEST_F(Spec_12_DecisionLog, DecisionIsLoggedOnceForItsKey) {
  {
    Session session = create();
    ASSERT_TRUE(session.log_decision("a", {{"id", "i1"}, {"decision", "KEEP"}}));
    ASSERT_TRUE(session.log_decision("a", {{"id", "i1"}, {"decision", "KEEP"}}));
    ASSERT_TRUE(session.log_decision("b", {{"id", "i2"}, {"decision", "REVERT"}}));
  }
  // A kill in the middle of a line.
  std::ofstream(layout().decision_log(), std::ios::app) << R"({"key": "c", "se)";
  Session session = Session::resume(layout()).value();
  ASSERT_TRUE(session.log_decision("b", {{"id", "i2"}, {"decision", "REVERT"}}));
  ASSERT_TRUE(session.log_decision("c", {{"id", "i3"}, {"decision", "KEEP"}}));
  std::istringstream lines(read_text(layout().decision_log()));
  std::vector<std::string> seen;
  for (std::string line; std::getline(lines, line);) {
    const Json row = parse_json(line, "row").value();
    seen.push_back(row.at("seq").dump() + row.at("id").get<std::string>());
  }
  EXPECT_EQ(seen, (std::vector<std::string>{"1i1", "2i2", "3i3"}));
}

TEST_F(Spec_12_DecisionLog, FullDiskLosesNoDecision) {
  Session session = create();
  ASSERT_TRUE(session.log_decision("a", {{"decision", "KEEP"}}));
  const std::string before = read_text(layout().decision_log());
  {
    const FullDisk full(before.size() + 10);
    const auto logged = session.log_decision("b", {{"decision", std::string(100, 'x')}});
    ASSERT_FALSE(logged);
    EXPECT_EQ(logged.error().error_class, "unwritable_file");
  }
  EXPECT_EQ(read_text(layout().decision_log()), before);
  EXPECT_TRUE(session.log_decision("b", {{"decision", "REVERT"}}));
}

}  // namespace
}  // namespace hyperloom::session
