#include "hyperloom/session/layout.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "loom/base/hash.h"

namespace hyperloom::session {
namespace {

constexpr size_t kLongestName = 100;

bool is_plain(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
         c == '_' || c == '-';
}

fs::path absolute_path(const fs::path& path) {
  std::error_code error;
  const fs::path result = fs::absolute(path, error);
  return (error ? path : result).lexically_normal();
}

}  // namespace

fs::path data_root(const Environment& environment, const fs::path& shared) {
  const std::string chosen = environment.text("USER_DATA_PATH");
  if (!chosen.empty()) return absolute_path(chosen);
  std::error_code error;
  if (fs::is_directory(shared, error) && ::access(shared.c_str(), W_OK | X_OK) == 0) {
    return absolute_path(shared);
  }
  return absolute_path("session");
}

Result<Layout> Layout::make(fs::path root, std::string id) {
  const bool plain = !id.empty() && id.size() <= kLongestName && std::ranges::all_of(id, is_plain);
  if (!plain || id == "." || id == "..") {
    return fail("invalid_session_id", fmt::format("'{}' is no session id", id),
                fmt::format("use up to {} letters, digits, '.', '_' and '-', but not '.' or '..'",
                            kLongestName));
  }
  Layout layout;
  layout.root = absolute_path(root);
  layout.session = layout.root / "sessions" / id;
  layout.id = std::move(id);
  return layout;
}

std::string safe_name(std::string_view id) {
  std::string name;
  for (const char c : id.substr(0, kLongestName)) name += is_plain(c) ? c : '_';
  const bool unchanged = name == id && name != "." && name != ".." && !name.empty();
  if (unchanged) return name;
  return fmt::format("{}-{}", name, loom::sha256_hex(id).substr(0, 12));
}

fs::path Layout::integration(const std::string& integration_id) const {
  return session / "integrations" / safe_name(integration_id);
}

fs::path Layout::lane(const std::string& lane, const std::string& task_id) const {
  return session / "lanes" / safe_name(lane) / safe_name(task_id);
}

fs::path Layout::prompt(const std::string& attempt_id) const {
  return run() / "prompts" / (safe_name(attempt_id) + ".md");
}

fs::path Layout::attempt_output(const std::string& attempt_id) const {
  return run() / "optimized" / (safe_name(attempt_id) + "_stdout.log");
}

fs::path Layout::verification(const std::string& kernel_id) const {
  return run() / "verification" / (safe_name(kernel_id) + ".json");
}

fs::path Layout::result(const std::string& kernel_id) const {
  return run() / "results" / (safe_name(kernel_id) + ".json");
}

fs::path Layout::log(const std::string& tool, const std::string& run_id) const {
  return run() / "logs" / safe_name(tool) / (safe_name(run_id) + ".log");
}

fs::path Layout::status(const std::string& tool, const std::string& run_id) const {
  return run() / "status" / safe_name(tool) / (safe_name(run_id) + ".json");
}

fs::path Layout::kernel_workspace(const std::string& kernel_id) const {
  return root / "kernel-agent-workspace" / safe_name(kernel_id);
}

}  // namespace hyperloom::session
