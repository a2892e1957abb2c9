// Ends a program that takes longer than its user allows.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "common/cli.h"

namespace loom {

struct TimeoutFlag {
  double seconds = 0;  // 0: no limit

  void declare(CLI::App& app);
};

// While it lives, the time runs. When it is over, RUN/029 is printed and the process ends with
// status 1, whatever its threads do: code that hangs cannot be asked to stop. What must appear
// whole is written under hold().
class Watchdog {
 public:
  Watchdog(const Tool& tool, const TimeoutFlag& flag);
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;
  ~Watchdog();

  // While the lock is held the process goes on.
  std::unique_lock<std::mutex> hold() { return std::unique_lock(mutex_); }

 private:
  void watch(std::chrono::steady_clock::time_point end, bool json, double seconds);

  std::mutex mutex_;
  std::condition_variable ended_;
  bool done_ = false;
  std::thread thread_;
};

}  // namespace loom
