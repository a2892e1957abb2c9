// Wall-clock stamps for records, and deadlines on the steady clock.
#pragma once

#include <chrono>
#include <string>

namespace hyperloom {

// "2026-11-30T09:00:00.123456Z".
std::string utc_now();

// A moment by which work has to end. Copyable; any thread.
class Deadline {
 public:
  using Clock = std::chrono::steady_clock;
  // Never.
  Deadline() : end_(Clock::time_point::max()) {}
  static Deadline in_seconds(double seconds);

  bool unlimited() const { return end_ == Clock::time_point::max(); }
  bool passed() const { return !unlimited() && Clock::now() >= end_; }
  // Never negative; infinity when unlimited.
  double seconds_left() const;
  Deadline earlier(const Deadline& other) const { return end_ < other.end_ ? *this : other; }

 private:
  Clock::time_point end_;
};

}  // namespace hyperloom
