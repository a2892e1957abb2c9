// What an issue did, dispatch by dispatch.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

namespace loom {

struct DispatchEvent {
  uint32_t command = 0;  // of the plan
  uint32_t thread =
      0;               // 0 is the calling one, the others in the order in which they first recorded
  uint64_t begin = 0;  // nanoseconds since the issue began
  uint64_t end = 0;
  uint64_t first_workgroup = 0;               // the part of the dispatch that this thread ran
  uint64_t last_workgroup = 0;                // one past it
  std::array<uint32_t, 3> count = {1, 1, 1};  // workgroups of the whole dispatch
};

// Collects the events of one issue. Any number of threads may record at once.
class Trace {
 public:
  using Clock = std::chrono::steady_clock;

  // Forgets what was recorded; the issue begins on the calling thread.
  void begin();
  // `start` and `end` are when the kernel was called and when it returned; the event's times and
  // thread are filled in.
  void record(DispatchEvent event, Clock::time_point start, Clock::time_point end) noexcept;
  // The issue is done.
  void end();

  // In order of their begin; only while nobody records.
  std::vector<DispatchEvent> events() const;
  // Of the whole issue, in nanoseconds.
  uint64_t duration() const { return duration_; }
  // Whether there was no memory for some of the events.
  bool incomplete() const { return incomplete_; }

 private:
  uint64_t since_begin(Clock::time_point when) const;

  Clock::time_point begin_;
  uint64_t duration_ = 0;
  std::mutex mutex_;
  bool incomplete_ = false;
  std::vector<std::thread::id> threads_;
  std::vector<DispatchEvent> events_;
};

}  // namespace loom
