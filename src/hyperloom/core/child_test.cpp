#include "hyperloom/core/child.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <thread>

namespace hyperloom {
namespace {

ChildOptions shell(const std::string& script) { return {.command = {"/bin/sh", "-c", script}}; }

pid_t number(const std::string& text) { return static_cast<pid_t>(std::stol(text)); }

// A process that was killed may take a moment to be gone.
bool ends_soon(pid_t pid) {
  for (int i = 0; i < 500; ++i) {
    if (!find_process(pid)) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return false;
}

TEST(RunChild, CapturesBothStreamsAndTheExitCode) {
  const auto result = run_child(shell("echo out; echo err >&2; exit 3"));
  ASSERT_TRUE(result);
  EXPECT_EQ(result->exit_code, 3);
  EXPECT_EQ(result->output, "out\n");
  EXPECT_EQ(result->errors, "err\n");
  EXPECT_FALSE(result->truncated);
}

TEST(RunChild, KeepsTheEndOfTooMuchOutput) {
  ChildOptions options = shell("i=0; while [ $i -lt 2000 ]; do echo line$i; i=$((i+1)); done");
  options.output_limit = 100;
  const auto result = run_child(options);
  ASSERT_TRUE(result);
  EXPECT_TRUE(result->truncated);
  EXPECT_EQ(result->output.size(), 100u);
  EXPECT_TRUE(result->output.ends_with("line1999\n"));
}

TEST(RunChild, NamesTheProgramThatIsMissing) {
  const auto result = run_child({.command = {"/nowhere/program"}});
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().error_class, "child_not_started");
  EXPECT_NE(result.error().message.find("/nowhere/program"), std::string::npos);
  EXPECT_NE(result.error().message.find("No such file"), std::string::npos);
}

TEST(RunChild, RunsInItsFolderWithItsEnvironment) {
  ChildOptions options = shell("pwd; echo $EXTRA; echo $HYPERLOOM_SESSION_TOKEN");
  options.folder = "/";
  options.environment["EXTRA"] = "more";
  options.session_token = "session-7";
  const auto result = run_child(options);
  ASSERT_TRUE(result);
  EXPECT_EQ(result->output, "/\nmore\nsession-7\n");
}

TEST(RunChild, SaysWhichSignalKilledIt) {
  const auto result = run_child(shell("kill -SEGV $$"));
  ASSERT_TRUE(result);
  EXPECT_EQ(result->signal, SIGSEGV);
  EXPECT_EQ(result->exit_code, 128 + SIGSEGV);
}

TEST(Spec_12, OvertimeEndsTheWholeGroupWithTheSyntheticCode) {
  const auto result = run_child(shell("sleep 1000 & echo $!; wait"), Deadline::in_seconds(0.3));
  ASSERT_TRUE(result);
  EXPECT_EQ(result->exit_code, -909);
  EXPECT_TRUE(ends_soon(number(result->output)));
}

TEST(Spec_12, CancelledEndsTheGroupWithTheSyntheticCode) {
  std::stop_source stop;
  std::jthread later([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    stop.request_stop();
  });
  const auto result = run_child(shell("sleep 1000 & echo $!; wait"), {}, stop.get_token());
  ASSERT_TRUE(result);
  EXPECT_EQ(result->exit_code, -917);
  EXPECT_TRUE(ends_soon(number(result->output)));
}

TEST(Spec_12, AChildThatIgnoresSigtermIsKilled) {
  const auto result = run_child(shell("trap '' TERM; echo $$; while :; do sleep 1; done"),
                                Deadline::in_seconds(0.2));
  ASSERT_TRUE(result);
  EXPECT_EQ(result->exit_code, -909);
  EXPECT_TRUE(ends_soon(number(result->output)));
}

TEST(Spec_12, WhatAnEndedChildLeavesBehindIsEndedToo) {
  const auto result = run_child(shell("sleep 1000 & echo $!"));
  ASSERT_TRUE(result);
  EXPECT_EQ(result->exit_code, 0);
  EXPECT_TRUE(ends_soon(number(result->output)));
}

TEST(Spec_12, EachChildLeadsItsOwnGroup) {
  const auto result =
      run_child(shell("echo $$; ps -o pgid= -p $$ 2>/dev/null || cut -d' ' -f5 /proc/$$/stat"));
  ASSERT_TRUE(result);
  const size_t line = result->output.find('\n');
  EXPECT_EQ(number(result->output), number(result->output.substr(line + 1)));
  EXPECT_NE(number(result->output), getpgrp());
}

// IR-5: a process is known by pid and start time, never by its name.
TEST(IR_5, AnotherStartTimeIsAnotherProcess) {
  ProcessId self = own_process();
  EXPECT_TRUE(is_running(self));
  self.start_time += 1;
  EXPECT_FALSE(is_running(self));
}

TEST(Spec_12, StraysOfAKilledRunAreFoundByTheirToken) {
  ChildOptions options = shell("echo ready; exec sleep 1000");
  options.session_token = "token-of-child-test-" + std::to_string(getpid());
  auto child = Child::start(options);
  ASSERT_TRUE(child);
  ASSERT_TRUE(child->read_line(Deadline::in_seconds(20), {}));
  EXPECT_EQ(processes_with_token(options.session_token), std::vector{child->process()});
  EXPECT_TRUE(processes_with_token("some-other-token").empty());
  EXPECT_EQ(end_strays(options.session_token), 1u);
  EXPECT_TRUE(ends_soon(child->process().pid));
}

TEST(Spec_12, AChildDiesWithItsParent) {
  std::array<int, 2> ends{};
  ASSERT_EQ(pipe(ends.data()), 0);
  const pid_t parent = fork();
  if (parent == 0) {
    // The thread that asks for the child ends; the child must outlive that, but not the process.
    pid_t pid = 0;
    std::optional<Child> kept;
    std::thread([&] {
      auto child = Child::start(shell("trap '' TERM; while :; do sleep 1; done"));
      if (!child) return;
      pid = child->process().pid;
      kept = std::move(*child);
    }).join();
    usleep(200000);
    if (!find_process(pid)) pid = 0;
    (void)!write(ends[1], &pid, sizeof pid);
    kill(getpid(), SIGKILL);
  }
  pid_t child = 0;
  ASSERT_EQ(read(ends[0], &child, sizeof child), static_cast<ssize_t>(sizeof child));
  int status = 0;
  waitpid(parent, &status, 0);
  close(ends[0]);
  close(ends[1]);
  ASSERT_GT(child, 0) << "the child did not outlive the thread that started it";
  EXPECT_TRUE(ends_soon(child));
}

TEST(ChildLines, GoBackAndForth) {
  auto child = Child::start(shell("while read -r line; do echo \"got $line\"; done"));
  ASSERT_TRUE(child);
  const Deadline deadline = Deadline::in_seconds(20);
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(child->write_line("line " + std::to_string(i), deadline, {}));
    const auto answer = child->read_line(deadline, {});
    ASSERT_TRUE(answer);
    EXPECT_EQ(*answer, "got line " + std::to_string(i));
  }
  // The end of its input and the signal reach it in either order.
  const int code = child->end().exit_code;
  EXPECT_TRUE(code == 0 || code == 128 + SIGTERM) << code;
}

TEST(ChildLines, LongLinesPassBothWays) {
  auto child = Child::start({.command = {"cat"}});
  ASSERT_TRUE(child);
  const std::string line(3 << 20, 'x');
  std::jthread reader;  // `cat` answers while it is written to
  Result<void> written;
  {
    std::string half = line.substr(0, 100000);
    written = child->write_line(half, Deadline::in_seconds(20), {});
    ASSERT_TRUE(written);
    EXPECT_EQ(*child->read_line(Deadline::in_seconds(20), {}), half);
  }
  written = child->write_line(line, Deadline::in_seconds(20), {});
  ASSERT_TRUE(written);
  EXPECT_EQ(*child->read_line(Deadline::in_seconds(20), {}), line);
}

TEST(ChildLines, AnExitIsAnErrorThatSaysHow) {
  auto child = Child::start(shell("read -r line; echo last; exit 9"));
  ASSERT_TRUE(child);
  const Deadline deadline = Deadline::in_seconds(20);
  ASSERT_TRUE(child->write_line("go", deadline, {}));
  EXPECT_EQ(*child->read_line(deadline, {}), "last");
  const auto none = child->read_line(deadline, {});
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().error_class, "child_exited");
  EXPECT_NE(none.error().message.find("exit code 9"), std::string::npos);
  EXPECT_FALSE(child->write_line("more", deadline, {}));
}

TEST(ChildLines, SilencePastTheDeadlineEndsTheChild) {
  auto child = Child::start(shell("exec sleep 1000"));
  ASSERT_TRUE(child);
  const auto none = child->read_line(Deadline::in_seconds(0.2), {});
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().error_class, "child_timeout");
  EXPECT_FALSE(is_running(child->process()));
  EXPECT_EQ(child->end().exit_code, -909);
}

TEST(ChildLines, AnEndlessLineIsGarbage) {
  ChildOptions options = shell("exec tr '\\0' x < /dev/zero");
  options.output_limit = 1 << 20;
  auto child = Child::start(options);
  ASSERT_TRUE(child);
  const auto none = child->read_line(Deadline::in_seconds(60), {});
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().error_class, "child_garbage");
  EXPECT_FALSE(is_running(child->process()));
}

}  // namespace
}  // namespace hyperloom
