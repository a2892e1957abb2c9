// Trees for the tests of this room.
#pragma once

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "hyperloom/core/testing.h"

namespace hyperloom::integrate {

namespace fs = std::filesystem;

// The program's temporary files lie in memory where that is possible: a kill is no power cut, so
// what these tests look at does not need a disk, whose syncs take most of their time.
inline const bool kInMemory =
    ::access("/dev/shm", W_OK) == 0 && ::setenv("TMPDIR", "/dev/shm", 0) == 0;

// A temporary folder, with what a test does to files in it.
class Scratch {
 public:
  Scratch() : path_(fs::canonical(folder_.path())) {}
  fs::path operator/(const fs::path& name) const { return path_ / name; }
  const fs::path& path() const { return path_; }

  fs::path put(const fs::path& name, const std::string& text, unsigned mode = 0644) const {
    const fs::path file = path_ / name;
    fs::create_directories(file.parent_path());
    std::ofstream(file) << text;
    ::chmod(file.c_str(), mode);
    return file;
  }
  std::string get(const fs::path& name) const {
    std::ifstream stream(path_ / name);
    return {std::istreambuf_iterator<char>(stream), {}};
  }

 private:
  TempFolder folder_;
  fs::path path_;
};

// Everything below a folder, names, modes and bytes: equal texts are equal trees.
inline std::string picture(const fs::path& folder) {
  std::map<std::string, std::string> entries;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    struct stat info{};
    ::lstat(entry.path().c_str(), &info);
    std::string& text = entries[entry.path().lexically_relative(folder).string()];
    text = std::to_string(info.st_mode) + " ";
    if (!S_ISREG(info.st_mode)) continue;
    std::ifstream stream(entry.path());
    text.append(std::istreambuf_iterator<char>(stream), {});
  }
  std::string result;
  for (const auto& [name, text] : entries) result += name + " " + text + "\n";
  return result;
}

// Runs the disabled test `name` of this program in a process of its own, which is killed at step
// `fault` (0: never). The argument reaches it as HYPERLOOM_TEST_ARGUMENT. True when it was killed;
// a failure of it fails the calling test.
inline bool killed_at(const std::string& name, int fault, const std::string& argument) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::setenv("HYPERLOOM_TEST_ARGUMENT", argument.c_str(), 1);
    if (fault > 0) ::setenv("HYPERLOOM_FAULT_POINT", std::to_string(fault).c_str(), 1);
    const std::string filter = "--gtest_filter=" + name;
    ::execl("/proc/self/exe", "test", filter.c_str(), "--gtest_also_run_disabled_tests",
            "--gtest_brief=1", nullptr);
    ::_exit(127);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) return true;
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << name << " " << status;
  return false;
}
inline std::string test_argument() {
  const char* argument = std::getenv("HYPERLOOM_TEST_ARGUMENT");
  return argument == nullptr ? "" : argument;
}

inline std::vector<fs::path> manifests_below(const fs::path& folder) {
  std::vector<fs::path> result;
  std::error_code error;
  for (fs::recursive_directory_iterator at(folder, error), end; !error && at != end; ++at) {
    if (at->path().filename() == "manifest.json") result.push_back(at->path());
  }
  return result;
}

}  // namespace hyperloom::integrate
