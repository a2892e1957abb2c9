#include "common/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <thread>

#include "common/cli.h"

namespace loom {
namespace {

std::atomic<ProgressMode> progress_mode{ProgressMode::Auto};

using Clock = std::chrono::steady_clock;
constexpr auto kDelay = std::chrono::seconds(1);
constexpr auto kInterval = std::chrono::milliseconds(200);

}  // namespace

void set_progress_mode(ProgressMode mode) { progress_mode.store(mode); }

// A thread of its own paints, so that one long step still shows the time it takes.
struct Progress::State {
  std::string label;
  uint64_t total = 0;
  bool terminal = false;
  std::atomic<uint64_t> done{0};
  Clock::time_point start = Clock::now();
  std::mutex mutex;
  std::condition_variable wake;
  bool finished = false;
  bool painted = false;
  std::thread painter;

  void paint() {
    const auto seconds =
        std::chrono::duration_cast<std::chrono::seconds>(Clock::now() - start).count();
    std::string line = label;
    if (total != 0) line += fmt::format(" {}/{}", done.load(std::memory_order_relaxed), total);
    line += fmt::format(" ({} s)", seconds);
    if (terminal) {
      line = "\r\x1b[K" + line;
    } else {
      line.push_back('\n');
    }
    std::fputs(line.c_str(), stderr);
    std::fflush(stderr);
    painted = true;
  }

  void run() {
    std::unique_lock lock(mutex);
    // A log gets a line a second, a terminal a smooth count.
    const auto interval = terminal ? Clock::duration(kInterval) : Clock::duration(kDelay);
    if (wake.wait_for(lock, kDelay, [&] { return finished; })) return;
    do paint();
    while (!wake.wait_for(lock, interval, [&] { return finished; }));
  }
};

Progress::Progress(std::string label, uint64_t total) {
  const ProgressMode mode = progress_mode.load();
  const bool terminal = ::isatty(STDERR_FILENO) != 0;
  if (mode == ProgressMode::Never || (mode == ProgressMode::Auto && !terminal)) return;
  state_ = std::make_unique<State>();
  state_->label = std::move(label);
  state_->total = total;
  state_->terminal = terminal;
  if (mode == ProgressMode::Always) state_->paint();
  state_->painter = std::thread([state = state_.get()] { state->run(); });
}

Progress::~Progress() {
  if (!state_) return;
  {
    const std::lock_guard lock(state_->mutex);
    state_->finished = true;
  }
  state_->wake.notify_all();
  state_->painter.join();
  if (state_->painted && state_->terminal) {
    std::fputs("\r\x1b[K", stderr);
    std::fflush(stderr);
  }
}

void Progress::step(uint64_t count) {
  if (state_) state_->done.fetch_add(count, std::memory_order_relaxed);
}

}  // namespace loom
