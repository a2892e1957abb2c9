#include "hyperloom/optimize/clock.h"

#include <algorithm>
#include <chrono>

namespace hyperloom::optimize {

LadderClock::LadderClock(double seconds, Deadline session)
    : seconds_(seconds), session_(session), since_(Clock::now()) {}

double LadderClock::used_locked() const {
  if (waiting_ > 0) return used_;
  return used_ + std::chrono::duration<double>(Clock::now() - since_).count();
}

double LadderClock::seconds_left() const {
  const std::lock_guard lock(mutex_);
  return std::max(0.0, std::min(seconds_ - used_locked(), session_.seconds_left()));
}

Deadline LadderClock::deadline() const {
  const std::lock_guard lock(mutex_);
  return Deadline::in_seconds(std::max(0.0, seconds_ - used_locked())).earlier(session_);
}

LadderClock::Waiting::Waiting(LadderClock& clock) : clock_(clock) {
  const std::lock_guard lock(clock_.mutex_);
  clock_.used_ = clock_.used_locked();
  ++clock_.waiting_;
}

LadderClock::Waiting::~Waiting() {
  const std::lock_guard lock(clock_.mutex_);
  if (--clock_.waiting_ == 0) clock_.since_ = Clock::now();
}

QuietMachine::Turn::Turn(QuietMachine& machine, bool timed) : machine_(machine), timed_(timed) {
  std::unique_lock lock(machine_.mutex_);
  if (timed_) {
    ++machine_.wanted_;
    machine_.changed_.wait(lock, [&] { return machine_.busy_ == 0 && !machine_.timing_; });
    --machine_.wanted_;
    machine_.timing_ = true;
  } else {
    machine_.changed_.wait(lock, [&] { return machine_.wanted_ == 0 && !machine_.timing_; });
    ++machine_.busy_;
  }
}

QuietMachine::Turn::~Turn() {
  {
    const std::lock_guard lock(machine_.mutex_);
    if (timed_) {
      machine_.timing_ = false;
    } else {
      --machine_.busy_;
    }
  }
  machine_.changed_.notify_all();
}

}  // namespace hyperloom::optimize
