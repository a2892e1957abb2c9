#include "hyperloom/app/progress_line.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>

namespace hyperloom::app {

ProgressLine::ProgressLine(bool enabled)
    : enabled_(enabled), terminal_(::isatty(STDERR_FILENO) == 1) {}

std::string ProgressLine::text(const task::Progress& progress) {
  std::string line = progress.phase;
  const auto add = [&](const std::string& part) {
    if (!part.empty()) line += (line.empty() ? "" : " | ") + part;
  };
  add(progress.step);
  add(progress.kernel);
  add(progress.attempt);
  if (progress.best_so_far > 0) add(fmt::format("best {:.2f}x", progress.best_so_far));
  if (progress.seconds_left >= 0 && progress.seconds_left < 1e8) {
    add(fmt::format("{:.0f} s left", progress.seconds_left));
  }
  return line;
}

void ProgressLine::show(const task::Progress& progress) {
  if (!enabled_) return;
  const std::lock_guard lock(mutex_);
  if (terminal_) {
    fmt::print(stderr, "\r\033[K{}", text(progress));
    std::fflush(stderr);
    shown_ = true;
    return;
  }
  // Without what changes all the time, so that a log stays readable.
  task::Progress coarse = progress;
  coarse.best_so_far = -1;
  coarse.seconds_left = -1;
  coarse.attempt.clear();
  const std::string line = text(coarse);
  if (line == last_) return;
  last_ = line;
  fmt::print(stderr, "{}\n", line);
}

void ProgressLine::clear() {
  const std::lock_guard lock(mutex_);
  if (!shown_) return;
  fmt::print(stderr, "\r\033[K");
  std::fflush(stderr);
  shown_ = false;
}

}  // namespace hyperloom::app
