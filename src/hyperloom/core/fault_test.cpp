#include "hyperloom/core/fault.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>

#include "hyperloom/core/testing.h"
#include "loom/base/file.h"

namespace hyperloom {
namespace {

TEST(Faults, ProcessKillsItselfAtTheChosenStepAndLogsTheOthers) {
  const TempFolder folder;
  const std::string log = (folder / "steps").string();
  const pid_t child = ::fork();
  if (child == 0) {
    ::setenv("HYPERLOOM_FAULT_POINT", "3", 1);
    ::setenv("HYPERLOOM_FAULT_LOG", log.c_str(), 1);
    for (const char* step : {"one", "two", "three", "four"}) fault_point(step);
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(WTERMSIG(status), SIGKILL);
  EXPECT_EQ(loom::read_file(log).value(), "1 one\n2 two\n3 three\n");
}

}  // namespace
}  // namespace hyperloom
