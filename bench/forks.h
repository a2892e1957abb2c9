#pragma once

// Forks of two equal branches, measured alike for every side.

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "timing.h"

namespace loom::bench {

// What a branch does: `steps` dependent steps of a recurrence, about a nanosecond each.
inline uint32_t recurrence(uint32_t steps, uint32_t x) {
  for (uint32_t i = 0; i < steps; ++i) x = x * 1664525u + 1013904223u;
  return x;
}

// Nanoseconds, medians. `one` runs a branch alone, `fork` runs two that may be concurrent.
struct ForkTimes {
  double one = 0;
  double fork = 0;       // forks that follow one another
  double fork_idle = 0;  // after 5 ms without work
};

// In turns, so that a machine that becomes slower meanwhile does so for all alike. The first calls
// of a turn are not counted: they wake threads that sleep.
template <typename One, typename Fork>
ForkTimes measure_forks(std::chrono::milliseconds budget, bool idle, One&& one, Fork&& fork) {
  const auto timed = [](auto& work) {
    const Clock::time_point start = Clock::now();
    work();
    return nanoseconds_since(start);
  };
  constexpr int kTurn = 8;
  std::vector<double> ones, forks, idles;
  const Clock::time_point begin = Clock::now();
  do {
    for (int i = -2; i < kTurn; ++i) {
      const double ns = timed(one);
      if (i >= 0) ones.push_back(ns);
    }
    for (int i = -2; i < kTurn; ++i) {
      const double ns = timed(fork);
      if (i >= 0) forks.push_back(ns);
    }
    if (idle) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      idles.push_back(timed(fork));
    }
  } while (ones.size() < 3 || Clock::now() - begin < budget);
  return {median(std::move(ones)), median(std::move(forks)),
          idles.empty() ? 0 : median(std::move(idles))};
}

// Steps that take `one` as long as that; `set_steps` says how many it does.
template <typename SetSteps, typename One>
uint32_t steps_for(std::chrono::microseconds duration, SetSteps&& set_steps, One&& one) {
  constexpr uint32_t kProbe = 100'000;
  set_steps(kProbe);
  one();
  std::vector<double> samples;
  for (int i = 0; i < 9; ++i) {
    const Clock::time_point start = Clock::now();
    one();
    samples.push_back(nanoseconds_since(start));
  }
  const double step = std::ranges::min(samples) / kProbe;
  return static_cast<uint32_t>(1e3 * static_cast<double>(duration.count()) / step);
}

// The rows that all sides have: what a fork that crosses cores costs beyond one of its branches of
// 10 us, in nanoseconds, and branches of 100 us in units of one.
template <typename SetSteps, typename One, typename Fork>
std::string fork_rows(std::chrono::milliseconds budget, SetSteps&& set_steps, One&& one,
                      Fork&& fork) {
  set_steps(steps_for(std::chrono::microseconds(10), set_steps, one));
  const ForkTimes small = measure_forks(budget, false, one, fork);
  set_steps(steps_for(std::chrono::microseconds(100), set_steps, one));
  const ForkTimes large = measure_forks(budget, true, one, fork);
  return fmt::format(R"("fork_cross":{},"fork_100us":{},"fork_100us_idle":{})",
                     small.fork - small.one, large.fork / large.one, large.fork_idle / large.one);
}

}  // namespace loom::bench
