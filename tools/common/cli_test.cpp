#include "common/cli.h"

#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "common/progress.h"
#include "loom/base/check.h"

namespace loom {
namespace {

constexpr ToolInfo kInfo{"loom-example", "Does one thing.", "  loom-example a.loom\n"};

struct ToolRun {
  int status = 0;
  std::string out;
  std::string err;
};

ToolRun run_with(
    std::vector<const char*> arguments, const ToolBody& body,
    const ToolSetup& setup = [](CLI::App&) {}) {
  arguments.insert(arguments.begin(), "loom-example");
  ::testing::internal::CaptureStdout();
  ::testing::internal::CaptureStderr();
  ToolRun run;
  run.status = run_main(static_cast<int>(arguments.size()), arguments.data(), kInfo, setup, body);
  run.out = ::testing::internal::GetCapturedStdout();
  run.err = ::testing::internal::GetCapturedStderr();
  return run;
}

ExitCode succeed(Tool& tool) { return tool.result(); }

TEST(RunMain, SuccessIsSilent) {
  const ToolRun run = run_with({}, succeed);
  EXPECT_EQ(run.status, 0);
  EXPECT_EQ(run.out + run.err, "");
}

TEST(RunMain, VersionAndHelpGoToStandardOutput) {
  const ToolRun version = run_with({"--version"}, succeed);
  EXPECT_EQ(version.status, 0);
  EXPECT_EQ(version.out, "loom-example " + std::string(tool_version()) + "\n");
  const ToolRun help = run_with({"--help"}, succeed);
  EXPECT_EQ(help.status, 0);
  EXPECT_NE(help.out.find("Does one thing."), std::string::npos);
  EXPECT_NE(help.out.find("Examples:\n  loom-example a.loom"), std::string::npos) << help.out;
  EXPECT_EQ(help.err, "");
}

TEST(RunMain, UnknownFlagIsUsage) {
  const ToolRun run = run_with({"--no-such-flag"}, succeed);
  EXPECT_EQ(run.status, 2);
  EXPECT_EQ(run.err.find("error[USAGE/001]: "), 0u) << run.err;
  EXPECT_NE(run.err.find("--no-such-flag"), std::string::npos);
}

TEST(RunMain, UnknownFlagCanBeJson) {
  const ToolRun run = run_with({"--no-such-flag", "--diagnostics=json"}, succeed);
  EXPECT_EQ(run.status, 2);
  EXPECT_EQ(run.err.find("{\"severity\":\"error\",\"code\":\"USAGE/001\""), 0u) << run.err;
}

TEST(RunMain, CommonFlagsWorkAfterASubcommand) {
  const auto setup = [](CLI::App& app) { app.add_subcommand("list", "list"); };
  const ToolRun run = run_with(
      {"list", "--diagnostics=json"}, [](Tool& tool) { return tool.usage_error("bad"); }, setup);
  EXPECT_EQ(run.status, 2);
  EXPECT_EQ(run.err.front(), '{');
}

TEST(RunMain, ErrorMakesTheRunFail) {
  const ToolRun run = run_with({}, [](Tool& tool) {
    EXPECT_FALSE(tool.read_input("/no/such/file"));
    return ExitCode::Success;
  });
  EXPECT_EQ(run.status, 1);
  EXPECT_EQ(run.err, "error[IO/001]: cannot read '/no/such/file': No such file or directory\n");
}

TEST(RunMain, FlushedErrorsStillCount) {
  const ToolRun run = run_with({}, [](Tool& tool) {
    EXPECT_FALSE(tool.write_output("/no/such/folder/file", "x"));
    tool.flush_diagnostics();
    return ExitCode::Success;
  });
  EXPECT_EQ(run.status, 1);
  EXPECT_NE(run.err.find("error[IO/002]: cannot write '/no/such/folder/file'"), std::string::npos);
}

TEST(RunMain, MissingEnvironmentIsThree) {
  EXPECT_EQ(run_with({}, [](Tool&) { return ExitCode::Environment; }).status, 3);
  EXPECT_EQ(run_with({}, [](Tool&) -> ExitCode { throw std::bad_alloc(); }).status, 3);
}

TEST(RunMain, ProgressShowsOnlyWhenAsked) {
  const auto body = [](Tool& tool) {
    const Progress progress("weaving", 3);
    return tool.result();
  };
  EXPECT_EQ(run_with({}, body).err, "");
  EXPECT_EQ(run_with({"--progress=always"}, body).err, "weaving 0/3 (0 s)\n");
  set_progress_mode(ProgressMode::Auto);
}

std::string content_of(const std::filesystem::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Reproducers of the death tests land in a folder that goes away with the test.
class RunMainDeathTest : public ::testing::Test {
 protected:
  RunMainDeathTest() {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
    ::setenv("TMPDIR", folder_.c_str(), 1);
  }
  ~RunMainDeathTest() override {
    ::unsetenv("TMPDIR");
    std::filesystem::remove_all(folder_);
  }
  // The one that a dead process left.
  std::filesystem::path reproducer() const {
    std::filesystem::path found;
    for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
      if (entry.is_directory()) found = entry.path();
    }
    EXPECT_FALSE(found.empty());
    return found;
  }
  std::filesystem::path folder_ =
      std::filesystem::path(::testing::TempDir()) / "loom-cli-test-reproducer";
};

TEST_F(RunMainDeathTest, BreachedCheckLeavesAReproducer) {
  std::ofstream(folder_ / "in put.loom") << "some text";
  const std::string input = (folder_ / "in put.loom").string();
  const char* arguments[] = {"loom-example", input.c_str(), "it's"};
  EXPECT_DEATH(run_main(
                   3, arguments, kInfo, [](CLI::App& app) { app.allow_extras(); },
                   [&](Tool& tool) {
                     EXPECT_TRUE(tool.read_input(input));
                     LOOM_CHECK(input.empty(), "the loom is jammed");
                     return tool.result();
                   }),
               "internal failure: the loom is jammed.*reproducer: ");
  const std::filesystem::path made = reproducer();
  EXPECT_NE(content_of(made / "command.txt").find("in put.loom' 'it'\\''s'"), std::string::npos);
  EXPECT_EQ(content_of(made / "version.txt"), std::string(tool_version()) + "\n");
  EXPECT_EQ(content_of(made / "failure.txt").find("the loom is jammed\n"), 0u);
  EXPECT_EQ(content_of(made / "inputs" / "0-in put.loom"), "some text");
}

TEST_F(RunMainDeathTest, TheScriptOfAReproducerUsesTheCopies) {
  std::ofstream(folder_ / "a.loom") << "some text";
  const std::string input = (folder_ / "a.loom").string();
  const std::string flag = "--library=" + input;
  const std::string other = "--output=b" + input;
  const char* arguments[] = {"loom-example", input.c_str(), flag.c_str(), other.c_str()};
  EXPECT_EXIT(run_main(
                  4, arguments, kInfo, [](CLI::App& app) { app.allow_extras(); },
                  [&](Tool& tool) {
                    tool.note_input(input);
                    std::abort();
                    return tool.result();
                  }),
              ::testing::KilledBySignal(SIGABRT), "internal failure: signal 6.*reproducer: ");
  const std::string script = content_of(reproducer() / "rerun.sh");
  EXPECT_NE(script.find(" inputs/0-a.loom --library=inputs/0-a.loom " + other), std::string::npos)
      << script;
}

TEST_F(RunMainDeathTest, ACrashLeavesAReproducer) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the sanitizer reports crashes itself";
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
  GTEST_SKIP() << "the sanitizer reports crashes itself";
#endif
#endif
  const char* arguments[] = {"loom-example"};
  EXPECT_EXIT(run_main(
                  1, arguments, kInfo, [](CLI::App&) {},
                  [](Tool& tool) {
                    std::raise(SIGSEGV);
                    return tool.result();
                  }),
              ::testing::KilledBySignal(SIGSEGV), "internal failure: signal 11.*--device=interp");
  EXPECT_EQ(content_of(reproducer() / "command.txt").find("cd "), 0u);
}

TEST_F(RunMainDeathTest, EscapedExceptionIsAnInternalFailure) {
  const char* arguments[] = {"loom-example"};
  EXPECT_DEATH(run_main(
                   1, arguments, kInfo, [](CLI::App&) {},
                   [](Tool&) -> ExitCode { throw std::runtime_error("torn warp"); }),
               "internal failure: torn warp");
}

}  // namespace
}  // namespace loom
