#include "common/watchdog.h"

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>

#include "loom/diag/render.h"

namespace loom {

void TimeoutFlag::declare(CLI::App& app) {
  app.add_option("--timeout", seconds, "end a run that takes longer than so many seconds")
      ->check(CLI::Range(0.001, 1e9));
}

Watchdog::Watchdog(const Tool& tool, const TimeoutFlag& flag) {
  if (flag.seconds <= 0) return;
  const auto limit = std::chrono::duration<double>(flag.seconds);
  const auto end = std::chrono::steady_clock::now() +
                   std::chrono::duration_cast<std::chrono::steady_clock::duration>(limit);
  thread_ = std::thread([this, end, json = tool.json_diagnostics(), seconds = flag.seconds] {
    watch(end, json, seconds);
  });
}

Watchdog::~Watchdog() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    done_ = true;
  }
  ended_.notify_one();
  thread_.join();
}

void Watchdog::watch(std::chrono::steady_clock::time_point end, bool json, double seconds) {
  std::unique_lock lock(mutex_);
  if (ended_.wait_until(lock, end, [&] { return done_; })) return;
  // The main thread cannot end the run any more: it would wait for the lock.
  Diagnostics diagnostics;
  diagnostics.emit(
      Diag::RunLimit, {},
      {{"limit", fmt::format("{} s", seconds)}, {"repair", "allow more time with --timeout"}});
  const SourceFiles none;
  const std::string text =
      json ? render_json(diagnostics.all()[0], none) : render_text(diagnostics.all()[0], none);
  std::fwrite(text.data(), 1, text.size(), stderr);
  std::fflush(stderr);
  std::_Exit(static_cast<int>(ExitCode::Failure));
}

}  // namespace loom
