#pragma once

// The timing loop shared by the benchmark programs.

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace loom::bench {

using Clock = std::chrono::steady_clock;

inline double nanoseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::nano>(Clock::now() - start).count();
}

inline double median(std::vector<double> samples) {
  const size_t middle = samples.size() / 2;
  std::nth_element(samples.begin(), samples.begin() + static_cast<std::ptrdiff_t>(middle),
                   samples.end());
  return samples[middle];
}

// Nanoseconds of one `work()`: the median over samples taken until `budget` has passed. A sample
// is a batch of calls long enough (20 us) that reading the clock does not count.
template <typename Work>
double median_ns(std::chrono::milliseconds budget, Work&& work) {
  work();
  const Clock::time_point probe = Clock::now();
  work();
  const double once = std::max(1.0, nanoseconds_since(probe));
  const auto batch = static_cast<int64_t>(std::max(1.0, 20'000.0 / once));
  std::vector<double> samples;
  const Clock::time_point begin = Clock::now();
  do {
    const Clock::time_point start = Clock::now();
    for (int64_t i = 0; i < batch; ++i) work();
    samples.push_back(nanoseconds_since(start) / static_cast<double>(batch));
  } while (samples.size() < 3 || Clock::now() - begin < budget);
  return median(std::move(samples));
}

// The same for work that consumes an input: `setup()` makes one and is not timed.
template <typename Setup, typename Work>
double median_ns_with_setup(std::chrono::milliseconds budget, Setup&& setup, Work&& work) {
  std::vector<double> samples;
  const Clock::time_point begin = Clock::now();
  do {
    auto input = setup();
    const Clock::time_point start = Clock::now();
    work(input);
    samples.push_back(nanoseconds_since(start));
  } while (samples.size() < 3 || Clock::now() - begin < budget);
  return median(std::move(samples));
}

}  // namespace loom::bench
