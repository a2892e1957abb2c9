#include "hyperloom/workload/peaks.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <thread>
#include <vector>

#include "hyperloom/core/time.h"

namespace hyperloom::workload {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kRounds = 5;

#define LOOM_WIDEST \
  __attribute__((target_clones("default", "arch=x86-64-v3", "arch=x86-64-v4"), noinline))
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || defined(__clang__)
// Dispatch by the loader runs before the sanitizers are there.
#undef LOOM_WIDEST
#define LOOM_WIDEST __attribute__((noinline))
#endif

// Independent chains of multiply and add, enough to fill the pipelines of one core: 2 operations a
// lane and step.
constexpr size_t kChains = 8;
template <class T>
using Wide __attribute__((vector_size(64))) = T;
template <class T>
constexpr size_t kLanes = kChains * 64 / sizeof(T);

template <class T>
inline __attribute__((always_inline)) void chains(T* values, T factor, T term, uint64_t steps) {
  Wide<T> lanes[kChains];
  std::memcpy(lanes, values, sizeof lanes);
  for (uint64_t step = 0; step < steps; ++step) {
#pragma GCC unroll 8
    for (size_t i = 0; i < kChains; ++i) lanes[i] = lanes[i] * factor + term;
  }
  std::memcpy(values, lanes, sizeof lanes);
}
LOOM_WIDEST void run_chains(float* v, float a, float b, uint64_t n) { chains(v, a, b, n); }
LOOM_WIDEST void run_chains(double* v, double a, double b, uint64_t n) { chains(v, a, b, n); }
LOOM_WIDEST void run_chains(uint32_t* v, uint32_t a, uint32_t b, uint64_t n) { chains(v, a, b, n); }
LOOM_WIDEST void run_chains(uint64_t* v, uint64_t a, uint64_t b, uint64_t n) { chains(v, a, b, n); }

// y = a * x + y over arrays that no cache holds: two reads and one write an element.
LOOM_WIDEST void stream(const float* x, float* y, float a, size_t count) {
  for (size_t i = 0; i < count; ++i) y[i] = a * x[i] + y[i];
}

// Runs `work(thread)` on all threads at once; the fewest seconds of any round, begin to end.
template <class Work>
double fewest_seconds(unsigned threads, Work&& work) {
  double best = 1e30;
  for (int round = 0; round < kRounds; ++round) {
    std::barrier start(static_cast<ptrdiff_t>(threads) + 1);
    std::vector<std::jthread> pool;
    for (unsigned t = 0; t < threads; ++t) {
      pool.emplace_back([&, t] {
        start.arrive_and_wait();
        work(t);
      });
    }
    start.arrive_and_wait();
    const auto begin = Clock::now();
    pool.clear();
    best = std::min(best, std::chrono::duration<double>(Clock::now() - begin).count());
  }
  return best;
}

std::atomic<uint64_t> sink{0};

template <class T>
double compute_peak(unsigned threads) {
  constexpr uint64_t kSteps = 1'000'000;
  const volatile T factor = 1, term = 3;  // unknown to the compiler
  const double seconds = fewest_seconds(threads, [&](unsigned t) {
    std::vector<T> values(kLanes<T>, static_cast<T>(t + 1));
    run_chains(values.data(), factor, term, kSteps);
    sink += values[t % kLanes<T>] > 2 ? 1 : 0;
  });
  return 2.0 * static_cast<double>(kLanes<T>) * kSteps * threads / seconds;
}

double bandwidth_peak(unsigned threads) {
  const size_t count = (size_t{48} << 20) / sizeof(float);  // of each array, over all threads
  const size_t part = count / threads;
  std::vector<float> x(count, 1.0F), y(count, 2.0F);
  const double seconds = fewest_seconds(
      threads, [&](unsigned t) { stream(x.data() + t * part, y.data() + t * part, 0.5F, part); });
  return 3.0 * sizeof(float) * static_cast<double>(part) * threads / seconds;
}

}  // namespace

Json measure_peaks(unsigned threads) {
  if (threads == 0) threads = std::max(1U, std::thread::hardware_concurrency());
  Json rows = Json::array();
  const auto add = [&](const char* name, double value, const char* unit, std::string method) {
    rows.push_back({{"name", name},
                    {"value", value},
                    {"unit", unit},
                    {"device", "cpu:0"},
                    {"method", std::move(method)},
                    {"threads", threads},
                    {"ts", utc_now()}});
  };
  const std::string chains_method = fmt::format(
      "{} independent chains of multiply and add a thread, best of {}", kChains, kRounds);
  add("compute_f32", compute_peak<float>(threads), "FLOP/s", chains_method);
  add("compute_f64", compute_peak<double>(threads), "FLOP/s", chains_method);
  add("compute_i32", compute_peak<uint32_t>(threads), "OP/s", chains_method);
  add("compute_i64", compute_peak<uint64_t>(threads), "OP/s", chains_method);
  add("bandwidth", bandwidth_peak(threads), "B/s",
      fmt::format("y = a * x + y over 2 arrays of 48 MiB, best of {}", kRounds));
  return rows;
}

}  // namespace hyperloom::workload
