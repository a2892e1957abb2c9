#include "common/reproducer.h"

#include <fmt/format.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>
#include <cstddef>
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
  std::string program;  // that runs, where the system tells
  std::vector<std::string> arguments;
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

std::string command_line(const std::vector<std::string>& arguments) {
  std::string command;
  for (const std::string& argument : arguments) {
    command += (command.empty() ? "" : " ") + quote(argument);
  }
  return command;
}

// Of an input's copy, in the folder of the reproducer.
std::string copy_name(size_t index, const Input& input) {
  return fmt::format("inputs/{}-{}", index, fs::path(input.path).filename().string());
}

// Flags name files as `FILE`, `--flag=FILE` or `--flag=%name=TYPE:FILE`.
std::string with_copy(const std::string& argument, const std::vector<Input>& inputs) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    const std::string& path = inputs[i].path;
    if (inputs[i].content || !argument.ends_with(path)) continue;
    const size_t begin = argument.size() - path.size();
    if (begin != 0 && argument[begin - 1] != '=' && argument[begin - 1] != ':') continue;
    return argument.substr(0, begin) + copy_name(i, inputs[i]);
  }
  return argument;
}

std::string rerun_script(const Record& state) {
  std::vector<std::string> arguments;
  for (const std::string& argument : state.arguments) {
    arguments.push_back(with_copy(argument, state.inputs));
  }
  if (!arguments.empty() && !state.program.empty()) arguments[0] = state.program;
  std::string script =
      "#!/bin/sh\n# Repeats the failure with the copies of its inputs.\n"
      "cd \"$(dirname \"$0\")\" || exit\nexec " +
      command_line(arguments);
  for (size_t i = 0; i < state.inputs.size(); ++i) {
    if (state.inputs[i].content) script += " < " + quote(copy_name(i, state.inputs[i]));
  }
  return script + "\n";
}

void copy_input(const fs::path& folder, size_t index, const Input& input) {
  const fs::path target = folder / copy_name(index, input);
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
                   fmt::format("cd {}\n{}\n", quote(work), command_line(state.arguments)));
  (void)write_file((folder / "rerun.sh").string(), rerun_script(state));
  (void)write_file((folder / "version.txt").string(), fmt::format("{}\n", tool_version()));
  (void)write_file((folder / "failure.txt").string(), failure);
  if (!state.inputs.empty()) fs::create_directory(folder / "inputs", error);
  for (size_t i = 0; i < state.inputs.size(); ++i) {
    copy_input(folder, i, state.inputs[i]);
  }
  return pattern;
}

// Once: an abort follows a failed check.
void report_failure(const std::string& failure) {
  static std::atomic<bool> reported = false;
  if (reported.exchange(true)) return;
  std::fputs(fmt::format("internal failure: {}", failure).c_str(), stderr);
  const std::string folder = write_reproducer(failure);
  if (folder.empty()) {
    std::fputs("no reproducer could be written to the temporary folder\n", stderr);
  } else {
    std::fputs(fmt::format("reproducer: {}\n", folder).c_str(), stderr);
  }
  std::fflush(stderr);
}

void on_check_failed(const char* file, int line, const char* condition, const char* message) {
  report_failure(fmt::format("{}\n{}:{}: {}\n", message, file, line, condition));
}

// What is called here may wait for a lock that the failing code holds, so the time is limited; a
// reproducer that is lost now and then is better than none.
void on_signal(int signal) {
  constexpr unsigned kSeconds = 10;
  std::signal(signal, SIG_DFL);
  ::alarm(kSeconds);
  const bool memory = signal == SIGSEGV || signal == SIGBUS;
  report_failure(fmt::format("signal {} ({}){}\n", signal, ::strsignal(signal),
                             memory ? "\na kernel that leaves its buffers ends like this, too; "
                                      "--device=interp checks every access"
                                    : ""));
  std::raise(signal);
}

// Where nobody else has a handler, as sanitizers do. On a stack of its own, as the other one may be
// used up.
void install_signal_handlers() {
  static std::array<std::byte, 1 << 16> stack;
  stack_t own{};
  own.ss_sp = stack.data();
  own.ss_size = stack.size();
  ::sigaltstack(&own, nullptr);
  for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) {
    struct sigaction old{};
    if (::sigaction(signal, nullptr, &old) != 0 || old.sa_handler != SIG_DFL) continue;
    struct sigaction made{};
    made.sa_handler = on_signal;
    made.sa_flags = SA_ONSTACK;
    ::sigaction(signal, &made, nullptr);
  }
}

}  // namespace

void install_reproducer(int argc, const char* const* argv) {
  Record& state = record();
  const std::lock_guard lock(state.mutex);
  state.arguments.assign(argv, argv + argc);
  state.inputs.clear();
  std::error_code unknown;
  state.program = fs::read_symlink("/proc/self/exe", unknown).string();
  set_check_handler(on_check_failed);
  install_signal_handlers();
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
