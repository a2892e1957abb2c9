#include "loom/runtime/cpu/partner.h"

#include <sched.h>
#include <sys/prctl.h>

#include <algorithm>
#include <thread>

#include "loom/runtime/cpu/clock.h"

namespace loom {
namespace {

// How often a waiting caller looks before it lets others run, and the partner before it looks at
// the clock.
constexpr int kLooks = 64;
// Empty jobs that a hand-over is measured with. The first one finds the caches as they were.
constexpr int kHandOvers = 4;

void pause() { __builtin_ia32_pause(); }

}  // namespace

Partner::~Partner() {
  // Nobody offers any more.
  state_.store(Stopped, std::memory_order_seq_cst);
  wake();
  thread_.join();
}

void Partner::wake() {
  wakes_.fetch_add(1, std::memory_order_seq_cst);
  wakes_.notify_one();
}

void Partner::call(Call call) {
  if (call_.load(std::memory_order_relaxed) >= call) return;
  caller_core_.store(sched_getcpu(), std::memory_order_relaxed);
  call_.store(call, std::memory_order_release);
}

void Partner::want(uint64_t worth) {
  call(Wanted);
  if (!asleep_.load(std::memory_order_relaxed)) return;
  const uint64_t wanted = wanted_work_.fetch_add(worth, std::memory_order_relaxed) + worth;
  if (wanted < kWorthWaking + rest_.load(std::memory_order_relaxed)) return;
  wanted_work_.store(0, std::memory_order_relaxed);
  wake();
}

bool Partner::offer(const Job& job) {
  if (engaged_.exchange(true, std::memory_order_acquire)) return false;
  ++done_then_;
  job_ = job;
  // To one that is here a plain store will do, for which this thread need not wait.
  if (present()) {
    state_.store(Offered, std::memory_order_release);
  } else {
    call(Missed);
    // Either this thread sees that the partner sleeps, or the partner sees the offer before it
    // does.
    state_.store(Offered, std::memory_order_seq_cst);
  }
  if (asleep_.load(std::memory_order_seq_cst)) wake();
  return true;
}

bool Partner::take_back() {
  uint32_t offered = Offered;
  bool taken_back = false;
  if (done_.load(std::memory_order_acquire) != done_then_) {
    if (state_.load(std::memory_order_relaxed) == Offered &&
        state_.compare_exchange_strong(offered, Idle, std::memory_order_relaxed)) {
      taken_back = true;
      --done_then_;
      // It says that it is there again as soon as it really looks.
      if (present()) present_.store(false, std::memory_order_relaxed);
      call(Wanted);
    }
  }
  if (!taken_back) {
    for (int looks = 0; done_.load(std::memory_order_acquire) != done_then_; ++looks) {
      if (looks < kLooks) {
        pause();
      } else {
        std::this_thread::yield();
      }
    }
  }
  engaged_.store(false, std::memory_order_release);
  return taken_back;
}

std::optional<uint64_t> Partner::hand_over() {
  std::optional<uint64_t> least;
  for (int i = 0; i < kHandOvers && present(); ++i) {
    const uint64_t start = now();
    if (!offer({[](const uint64_t*) {}})) return std::nullopt;
    while (done_.load(std::memory_order_acquire) != done_then_ && now() - start < kPreempted)
      pause();
    if (take_back()) return std::nullopt;
    const uint64_t time = now() - start;
    if (!least || time < *least) least = time;
  }
  return least;
}

void Partner::loop() {
  // Naps end when they should, not when the system finds it convenient; of this thread only.
  prctl(PR_SET_TIMERSLACK, 1000);
  while (state_.load(std::memory_order_relaxed) != Stopped) {
    if (stand_by()) {
      spin();
    } else {
      sleep();
    }
  }
}

// Takes up what is offered, until nothing came for a while or others want the core.
void Partner::spin() {
  uint64_t seen = now();
  uint64_t last = seen;
  call_.store(Nothing, std::memory_order_relaxed);
  while (state_.load(std::memory_order_relaxed) != Stopped) {
    if (!present()) present_.store(true, std::memory_order_relaxed);
    bool worked = false;
    for (int looks = 0; looks < kLooks; ++looks) {
      if (work()) {
        worked = true;
        looks = 0;
      } else {
        pause();
      }
    }
    const uint64_t time = now();
    if (worked) {
      last = time;
    } else if (time - last > kSpin || time - seen > kPreempted) {
      break;
    }
    seen = time;
  }
  present_.store(false, std::memory_order_relaxed);
  if (useful_) {
    rest_.store(0, std::memory_order_relaxed);
  } else {
    rest();
  }
  useful_ = false;
}

// It was there, or tried to be, for nothing: twice as long a rest as after the last such time.
void Partner::rest() {
  const uint64_t rest =
      std::clamp(2 * rest_.load(std::memory_order_relaxed), kFirstRest, kLongestRest);
  rest_.store(rest, std::memory_order_relaxed);
  resting_until_ = now() + rest;
}

// The system may put it on the core of the thread that wants it, above all where no core is idle.
// False when it may run on no other.
bool Partner::leave_core_of_caller() {
  const int core = caller_core_.load(std::memory_order_relaxed);
  if (core < 0 || sched_getcpu() != core) return true;
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0 || CPU_COUNT(&allowed) < 2) return false;
  cpu_set_t others = allowed;
  CPU_CLR(static_cast<unsigned>(core), &others);
  if (sched_setaffinity(0, sizeof others, &others) != 0) return false;
  sched_setaffinity(0, sizeof allowed, &allowed);
  return true;
}

// Naps until it should spin again: true; false when it should sleep, because that was not wanted
// for long, or was in vain the last time.
bool Partner::stand_by() {
  const uint64_t start = now();
  for (;;) {
    const uint32_t state = state_.load(std::memory_order_acquire);
    if (state == Offered) leave_core_of_caller();
    if (state == Stopped || work()) return true;
    const uint64_t time = now();
    const uint32_t call = call_.load(std::memory_order_acquire);
    // What is offered in any case is worth coming for.
    if (call == Missed) resting_until_ = 0;
    if (call != Nothing && time >= resting_until_) {
      call_.store(Nothing, std::memory_order_relaxed);
      if (leave_core_of_caller()) return true;
      rest();
    }
    if (rest_.load(std::memory_order_relaxed) != 0 || time - start > kStandby) return false;
    std::this_thread::sleep_for(std::chrono::nanoseconds(kNap));
  }
}

bool Partner::work() {
  uint32_t offered = Offered;
  if (state_.load(std::memory_order_relaxed) != Offered ||
      !state_.compare_exchange_strong(offered, Taken, std::memory_order_acquire,
                                      std::memory_order_relaxed)) {
    return false;
  }
  job_.run(job_.words.data());
  done_.store(done_.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  useful_ = true;
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
