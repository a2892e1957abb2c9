#include "common/reproducer.h"

#include <fmt/format.h>
#include <stdlib.h>

#include <cstdio>
#include <filesystem>
#include <mutex>
#include <optional>
#include <vector>

#include "common/cli.h"
#include "loom/base/check.h"
#include "loom/base/file.h"

namespace loom {
namespace {

namespace fs = std::filesystem;

struct Input {
  std::string path;
  std::optional<std::string> content;
};

struct Record {
  std::mutex mutex;
  std::string command;
  std::vector<Input> inputs;
};
Record& record() {
  static Record instance;
  return instance;
}

// Quoted so that a shell reads the same arguments back.
std::string quote(std::string_view argument) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_=+./:,@%";
  if (!argument.empty() && argument.find_first_not_of(kPlain) == std::string_view::npos) {
    return std::string(argument);
  }
  std::string out = "'";
  for (const char c : argument) {
    if (c == '\'') {
      out += "'\\''";
    } else {
      out.push_back(c);
    }
  }
  return out + "'";
}

void copy_input(const fs::path& folder, size_t index, const Input& input) {
  const fs::path target =
      folder / fmt::format("{}-{}", index, fs::path(input.path).filename().string());
  if (input.content) {
    (void)write_file(target.string(), *input.content);
    return;
  }
  std::error_code ignored;
  fs::copy_file(input.path, target, ignored);
}

// Empty when no folder can be made.
std::string write_reproducer(const std::string& failure) {
  Record& state = record();
  // The failing thread may hold the lock; then the record is read as it is.
  const std::unique_lock lock(state.mutex, std::try_to_lock);
  std::error_code error;
  const fs::path base = fs::temp_directory_path(error);
  if (error) return {};
  std::string pattern = (base / "loom-reproducer-XXXXXX").string();
  if (::mkdtemp(pattern.data()) == nullptr) return {};
  const fs::path folder(pattern);
  const std::string work = fs::current_path(error).string();
  (void)write_file((folder / "command.txt").string(),
                   fmt::format("cd {}\n{}\n", quote(work), state.command));
  (void)write_file((folder / "version.txt").string(), fmt::format("{}\n", tool_version()));
  (void)write_file((folder / "failure.txt").string(), failure);
  if (!state.inputs.empty()) fs::create_directory(folder / "inputs", error);
  for (size_t i = 0; i < state.inputs.size(); ++i) {
    copy_input(folder / "inputs", i, state.inputs[i]);
  }
  return pattern;
}

void on_check_failed(const char* file, int line, const char* condition, const char* message) {
  const std::string failure = fmt::format("{}\n{}:{}: {}\n", message, file, line, condition);
  std::fputs(fmt::format("internal failure: {}", failure).c_str(), stderr);
  const std::string folder = write_reproducer(failure);
  if (folder.empty()) {
    std::fputs("no reproducer could be written to the temporary folder\n", stderr);
  } else {
    std::fputs(fmt::format("reproducer: {}\n", folder).c_str(), stderr);
  }
  std::fflush(stderr);
}

}  // namespace

void install_reproducer(int argc, const char* const* argv) {
  Record& state = record();
  const std::lock_guard lock(state.mutex);
  state.command.clear();
  state.inputs.clear();
  for (int i = 0; i < argc; ++i) {
    if (i != 0) state.command.push_back(' ');
    state.command += quote(argv[i]);
  }
  set_check_handler(on_check_failed);
}

void add_reproducer_input(const std::string& path) {
  Record& state = record();
  const std::lock_guard lock(state.mutex);
  state.inputs.push_back({path, std::nullopt});
}

void add_reproducer_input(const std::string& name, std::string content) {
  Record& state = record();
  const std::lock_guard lock(state.mutex);
  state.inputs.push_back({name, std::move(content)});
}

}  // namespace loom
