// The time of one kernel's attempts, and when nothing else may run.
#pragma once

#include <condition_variable>
#include <mutex>

#include "hyperloom/core/time.h"

namespace hyperloom::optimize {

// Counts down from the moment it is made, and stands still while somebody waits for a turn on the
// device: waiting is nobody's budget. Threads: any.
class LadderClock {
 public:
  // `session` ends it as well, and does not stand still.
  LadderClock(double seconds, Deadline session);

  // Never negative.
  double seconds_left() const;
  bool passed() const { return seconds_left() <= 0; }
  // The end as it is, if nobody waits from here on.
  Deadline deadline() const;

  // Stops the clock while it lives.
  class Waiting {
   public:
    explicit Waiting(LadderClock& clock);
    Waiting(const Waiting&) = delete;
    Waiting& operator=(const Waiting&) = delete;
    ~Waiting();

   private:
    LadderClock& clock_;
  };

 private:
  using Clock = Deadline::Clock;
  double used_locked() const;

  mutable std::mutex mutex_;
  double seconds_;
  Deadline session_;
  Clock::time_point since_;  // of the stretch that is counted at this moment
  double used_ = 0;          // seconds of earlier stretches
  int waiting_ = 0;
};

// Work that keeps processors busy (builds) and work that is timed, on one machine: any number of
// the first at once, or one of the second alone. Whoever wants to time goes first, so that builds
// without end cannot keep it waiting. Threads: any.
class QuietMachine {
 public:
  class Turn {
   public:
    Turn(QuietMachine& machine, bool timed);
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;
    ~Turn();

   private:
    QuietMachine& machine_;
    bool timed_;
  };

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int busy_ = 0;
  int wanted_ = 0;
  bool timing_ = false;
};

}  // namespace hyperloom::optimize
