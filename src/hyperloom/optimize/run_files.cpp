#include "hyperloom/optimize/run_files.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <map>
#include <mutex>
#include <tuple>
#include <utility>

#include "hyperloom/core/durable.h"
#include "hyperloom/core/fault.h"
#include "hyperloom/core/process.h"
#include "hyperloom/core/time.h"
#include "loom/base/file.h"
#include "loom/base/hash.h"

namespace hyperloom::optimize {
namespace {

namespace fs = std::filesystem;

constexpr size_t kLastLines = 20;
// Rows that a kill may have left behind are among the last ones: each worker has at most one.
constexpr std::streamoff kTail = std::streamoff{1} << 20;

Result<void> make_parent(const fs::path& path) { return make_folder(path.parent_path()); }

bool tail_has_attempt(const fs::path& path, const std::string& attempt_id) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return false;
  file.seekg(0, std::ios::end);
  const std::streamoff size = file.tellg();
  file.seekg(std::max<std::streamoff>(0, size - kTail));
  for (std::string line; std::getline(file, line);) {
    if (line.find(attempt_id) == std::string::npos) continue;
    const auto row = parse_json(line, path.string());
    if (row && text_of(*row, "attempt_id") == attempt_id) return true;
  }
  return false;
}

bool is_alive(const Json& status) {
  const ProcessId process{static_cast<pid_t>(number_of(status, "pid")),
                          static_cast<uint64_t>(number_of(status, "pid_start_time"))};
  return is_running(process);
}

// Which file lies at a path: whoever changes one puts another in its place.
using Identity = std::tuple<ino_t, time_t, long>;
Identity identity_of(const fs::path& path) {
  struct stat about{};
  if (::stat(path.c_str(), &about) != 0) return {};
  return {about.st_ino, about.st_mtim.tv_sec, about.st_mtim.tv_nsec};
}

// Status files of runs that ended, so that each is read once and not at every selection.
class Ended {
 public:
  bool contains(const fs::path& path, const Identity& identity) {
    const std::lock_guard lock(mutex_);
    const auto found = files_.find(path.native());
    return found != files_.end() && found->second == identity;
  }
  void add(const fs::path& path, const Identity& identity) {
    const std::lock_guard lock(mutex_);
    files_[path.native()] = identity;
  }

 private:
  std::mutex mutex_;
  std::map<std::string, Identity> files_;
};

}  // namespace

std::string derived_id(const std::string& prefix, const std::string& session_id,
                       const std::string& task_key, int64_t ordinal) {
  const Json of = {prefix, session_id, task_key, ordinal};
  return prefix + "-" + loom::sha256_hex(compact(of)).substr(0, 8);
}

Result<void> save_json(const std::string& step, const fs::path& path, const Json& document) {
  if (auto made = make_parent(path); !made) return made;
  fault_point(step);
  return write_json(path, document);
}

Result<void> save_text(const std::string& step, const fs::path& path, std::string_view text) {
  if (auto made = make_parent(path); !made) return made;
  fault_point(step);
  return write_durable(path, text);
}

RunFiles::RunFiles(const session::Layout& layout, std::string run_id, const std::string& kernel_id)
    : run_id_(std::move(run_id)),
      log_path_(layout.log(kTool, run_id_)),
      status_path_(layout.status(kTool, run_id_)) {
  const ProcessId own = own_process();
  status_ = {{"tool", kTool},
             {"run_id", run_id_},
             {"state", "running"},
             {"current_step", ""},
             {"pid", own.pid},
             {"pid_start_time", own.start_time},
             {"started_at", utc_now()},
             {"log_path", log_path_.string()},
             {"artifact_paths", Json::object()},
             {"error", ""}};
  std::error_code ignored;
  fs::create_directories(log_path_.parent_path(), ignored);
  fs::remove(log_path_, ignored);
  say("kernel " + kernel_id);
}

void RunFiles::say(const std::string& line) {
  const std::lock_guard lock(mutex_);
  const std::string text = utc_now() + " " + line + "\n";
  std::ofstream file(log_path_, std::ios::app | std::ios::binary);
  file << text;
  offset_ += text.size();
  last_lines_.push_back(line);
  if (last_lines_.size() > kLastLines) last_lines_.pop_front();
}

Result<void> RunFiles::save_locked() {
  status_["updated_at"] = utc_now();
  status_["offset_bytes"] = offset_;
  status_["last_lines"] = last_lines_;
  return save_json("kernel_opt.status", status_path_, status_);
}

Result<void> RunFiles::step(const std::string& current_step) {
  const std::lock_guard lock(mutex_);
  status_["current_step"] = current_step;
  return save_locked();
}

Result<void> RunFiles::end(const std::string& state, const std::string& error,
                           const Json& artifact_paths) {
  const std::lock_guard lock(mutex_);
  status_["state"] = state;
  status_["current_step"] = "done";
  status_["error"] = error;
  status_["artifact_paths"] = artifact_paths;
  return save_locked();
}

std::set<std::string> in_flight_ids(const session::Layout& layout) {
  static Ended ended;
  std::set<std::string> ids;
  std::error_code error;
  const fs::path folder = layout.status(kTool, "ko-").parent_path();
  for (const auto& item : fs::directory_iterator(folder, error)) {
    const std::string name = item.path().filename().string();
    if (!name.starts_with("ko-") || item.path().extension() != ".json") continue;
    const Identity identity = identity_of(item.path());
    if (ended.contains(item.path(), identity)) continue;
    const auto status = read_json(item.path());
    if (!status) continue;
    if (text_of(*status, "state") != "running") {
      ended.add(item.path(), identity);
      continue;
    }
    if (!is_alive(*status)) continue;
    std::ifstream log(text_of(*status, "log_path"));
    // "<time> kernel <id>"
    for (std::string line; std::getline(log, line);) {
      const size_t at = line.find(" kernel ");
      if (at == std::string::npos) continue;
      ids.insert(line.substr(at + 8));
      break;
    }
  }
  return ids;
}

Result<void> append_attempt(const session::Layout& layout, const Json& row) {
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  if (auto made = make_parent(layout.attempts()); !made) return made;
  if (tail_has_attempt(layout.attempts(), text_of(row, "attempt_id"))) return {};
  fault_point("kernel_opt.attempt_row");
  return append_line(layout.attempts(), compact(row));
}

}  // namespace hyperloom::optimize
