#include "loom/runtime/cpu/partner.h"

#include <sys/prctl.h>

#include <chrono>
#include <thread>

namespace loom {
namespace {

// How often a waiting caller looks before it lets others run, and the partner before it looks at
// the clock.
constexpr int kLooks = 64;

uint64_t now() {
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                   std::chrono::steady_clock::now().time_since_epoch())
                                   .count());
}

void pause() { __builtin_ia32_pause(); }

}  // namespace

Partner::~Partner() {
  // Nobody offers any more.
  state_.store(Stopped, std::memory_order_seq_cst);
  wakes_.fetch_add(1, std::memory_order_seq_cst);
  wakes_.notify_one();
  thread_.join();
}

bool Partner::offer(Job job, void* context) {
  uint32_t free = Free;
  if (!state_.compare_exchange_strong(free, Filling, std::memory_order_acquire,
                                      std::memory_order_relaxed)) {
    return false;
  }
  job_ = job;
  context_ = context;
  // Either this thread sees that the partner sleeps, or the partner sees the offer before it does.
  state_.store(Offered, std::memory_order_seq_cst);
  if (asleep_.load(std::memory_order_seq_cst)) {
    wakes_.fetch_add(1, std::memory_order_seq_cst);
    wakes_.notify_one();
  }
  return true;
}

bool Partner::take_back() {
  uint32_t offered = Offered;
  if (state_.compare_exchange_strong(offered, Free, std::memory_order_acq_rel,
                                     std::memory_order_acquire)) {
    return true;
  }
  for (int looks = 0; state_.load(std::memory_order_acquire) != Done; ++looks) {
    if (looks < kLooks) {
      pause();
    } else {
      std::this_thread::yield();
    }
  }
  state_.store(Free, std::memory_order_release);
  return false;
}

void Partner::loop() {
  // Naps end when they should, not when the system finds it convenient; of this thread only.
  prctl(PR_SET_TIMERSLACK, 1000);
  uint64_t last = now();
  while (state_.load(std::memory_order_acquire) != Stopped) {
    bool worked = false;
    for (int looks = 0; looks < kLooks && !worked; ++looks) {
      worked = work();
      if (!worked) pause();
    }
    const uint64_t since = now();
    if (worked) {
      last = since;
    } else if (since - last > kStandby) {
      sleep();
      last = now();
    } else if (since - last > kSpin) {
      std::this_thread::sleep_for(std::chrono::nanoseconds(kNap));
    }
  }
}

bool Partner::work() {
  uint32_t offered = Offered;
  if (state_.load(std::memory_order_relaxed) != Offered ||
      !state_.compare_exchange_strong(offered, Running, std::memory_order_acquire,
                                      std::memory_order_relaxed)) {
    return false;
  }
  job_(context_);
  state_.store(Done, std::memory_order_release);
  return true;
}

void Partner::sleep() {
  const uint32_t wakes = wakes_.load(std::memory_order_seq_cst);
  asleep_.store(true, std::memory_order_seq_cst);
  const uint32_t state = state_.load(std::memory_order_seq_cst);
  if (state != Offered && state != Stopped) wakes_.wait(wakes, std::memory_order_seq_cst);
  asleep_.store(false, std::memory_order_seq_cst);
}

}  // namespace loom
