#include "loom/base/failed_checks.h"

#include <algorithm>
#include <cstdio>
#include <functional>
#include <mutex>
#include <vector>

namespace loom {
namespace {

constexpr size_t kMostKept = 256;

struct FailedCheck {
  const uint64_t* args;
  std::string text;
};

struct FailedChecks {
  std::mutex mutex;
  std::vector<FailedCheck> all;

  void publish() const { failed_checks_kept.store(all.size(), std::memory_order_relaxed); }
};

FailedChecks& failed_checks() {
  static FailedChecks instance;
  return instance;
}

}  // namespace

constinit std::atomic<size_t> failed_checks_kept = 0;

std::optional<std::string> take_failed_check(const uint64_t* first, size_t count) {
  FailedChecks& checks = failed_checks();
  const std::lock_guard lock(checks.mutex);
  const auto ours = [&](const FailedCheck& check) {
    return !std::less<>()(check.args, first) && std::less<>()(check.args, first + count);
  };
  const auto found = std::ranges::find_if(checks.all, ours);
  if (found == checks.all.end()) return std::nullopt;
  std::string text = std::move(found->text);
  std::erase_if(checks.all, ours);
  checks.publish();
  return text;
}

}  // namespace loom

void loom_check_failed(const uint64_t* args, const char* text) {
  if (args == nullptr) {  // the kernel cannot leave from there, and traps behind this call
    std::fprintf(stderr, "loom: assertion failed: %s\n", text);
    return;
  }
  loom::FailedChecks& checks = loom::failed_checks();
  const std::lock_guard lock(checks.mutex);
  if (std::ranges::find(checks.all, args, &loom::FailedCheck::args) != checks.all.end()) return;
  if (checks.all.size() == loom::kMostKept) checks.all.erase(checks.all.begin());
  checks.all.push_back({args, text});
  checks.publish();
}
