#include "hyperloom/core/process.h"

#include <dirent.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <fstream>
#include <memory>
#include <sstream>
#include <thread>

namespace hyperloom {
namespace {

std::optional<std::string> read_proc(pid_t pid, const char* file) {
  std::ifstream in("/proc/" + std::to_string(pid) + "/" + file, std::ios::binary);
  if (!in) return std::nullopt;
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

bool carries(const std::string& environment, const std::string& entry) {
  size_t at = 0;
  while (at < environment.size()) {
    const size_t end = std::min(environment.find('\0', at), environment.size());
    if (environment.compare(at, end - at, entry) == 0) return true;
    at = end + 1;
  }
  return false;
}

}  // namespace

std::optional<ProcessId> find_process(pid_t pid) {
  const auto stat = read_proc(pid, "stat");
  if (!stat) return std::nullopt;
  // The name, in parentheses, may hold anything; the fields after its last parenthesis do not.
  const size_t name_end = stat->rfind(')');
  if (name_end == std::string::npos) return std::nullopt;
  std::istringstream fields(stat->substr(name_end + 1));
  std::string field;
  constexpr int kState = 3;
  constexpr int kStartTime = 22;
  for (int number = kState; fields >> field; ++number) {
    if (number == kState && (field == "Z" || field == "X")) return std::nullopt;
    if (number != kStartTime) continue;
    ProcessId found{pid, 0};
    std::from_chars(field.data(), field.data() + field.size(), found.start_time);
    return found;
  }
  return std::nullopt;
}

ProcessId own_process() { return find_process(getpid()).value_or(ProcessId{getpid(), 0}); }

bool is_running(const ProcessId& process) { return find_process(process.pid) == process; }

std::vector<ProcessId> processes_with_token(const std::string& token) {
  std::vector<ProcessId> found;
  if (token.empty()) return found;
  const std::string entry = std::string(kSessionTokenVariable) + "=" + token;
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(opendir("/proc"), &closedir);
  if (folder == nullptr) return found;
  while (const dirent* row = readdir(folder.get())) {
    const std::string name = row->d_name;
    pid_t pid = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), pid);
    if (error != std::errc() || end != name.data() + name.size() || pid == getpid()) continue;
    // The identity first: environment and signal then are of the same process, or nobody's.
    const auto process = find_process(pid);
    const auto environment = read_proc(pid, "environ");
    if (process && environment && carries(*environment, entry)) found.push_back(*process);
  }
  std::ranges::sort(found, {}, &ProcessId::pid);
  return found;
}

size_t end_strays(const std::string& token) {
  constexpr int kPolls = 100;
  constexpr std::chrono::milliseconds kPause{10};
  std::vector<ProcessId> killed;
  for (const ProcessId& process : processes_with_token(token)) {
    if (is_running(process) && kill(process.pid, SIGKILL) == 0) killed.push_back(process);
  }
  for (int i = 0; i < kPolls && std::ranges::any_of(killed, is_running); ++i) {
    std::this_thread::sleep_for(kPause);
  }
  return killed.size();
}

}  // namespace hyperloom
