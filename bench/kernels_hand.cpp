// Loops written by hand for AVX2, with the traffic and the stores of the kernels beside them.
//
// usage: bench_kernels_hand BUDGET_MS CASE@THREADS...

#include <immintrin.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "common.h"
#include "kernel_cases.h"

#define LOOM_AVX2 __attribute__((target("avx2,fma")))

namespace loom::bench {
namespace {

constexpr size_t kStep = 32;  // floats: four registers

struct Part {
  size_t first;
  size_t last;
};

// The share of one thread, whole steps but for the last one's.
Part part_of(size_t count, size_t thread, size_t threads) {
  const size_t steps = (count + kStep - 1) / kStep;
  return {std::min(steps * thread / threads * kStep, count),
          std::min(steps * (thread + 1) / threads * kStep, count)};
}

// Threads that wait for the next turn without leaving their cores.
class Crew {
 public:
  explicit Crew(unsigned threads) {
    for (unsigned thread = 1; thread < threads; ++thread) {
      helpers_.emplace_back([this, thread] { help(thread); });
    }
  }
  ~Crew() {
    run({});
    for (std::thread& helper : helpers_) helper.join();
  }
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;

  // `work(thread)` on every thread. Empty work ends the helpers.
  void run(const std::function<void(size_t)>& work) {
    work_ = &work;
    left_.store(helpers_.size(), std::memory_order_relaxed);
    turn_.fetch_add(1, std::memory_order_release);
    if (work) work(0);
    while (left_.load(std::memory_order_acquire) != 0) _mm_pause();
  }

 private:
  void help(size_t thread) {
    for (uint64_t turn = 1;; ++turn) {
      while (turn_.load(std::memory_order_acquire) < turn) _mm_pause();
      const std::function<void(size_t)>& work = *work_;
      const bool ends = !work;
      if (!ends) work(thread);
      left_.fetch_sub(1, std::memory_order_release);
      if (ends) return;
    }
  }

  std::vector<std::thread> helpers_;
  const std::function<void(size_t)>* work_ = nullptr;
  std::atomic<uint64_t> turn_ = 0;
  std::atomic<size_t> left_ = 0;
};

struct Plain {
  LOOM_AVX2 static void store(float* at, __m256 value) { _mm256_storeu_ps(at, value); }
  static void fence() {}
};
// Addresses that are multiples of 32, as those of `Memory` are.
struct Stream {
  LOOM_AVX2 static void store(float* at, __m256 value) { _mm256_stream_ps(at, value); }
  static void fence() { _mm_sfence(); }
};

template <typename Store>
LOOM_AVX2 void copy(const float* x, float* y, Part part) {
  size_t i = part.first;
  for (; i + kStep <= part.last; i += kStep) {
    const __m256 a = _mm256_loadu_ps(x + i), b = _mm256_loadu_ps(x + i + 8);
    const __m256 c = _mm256_loadu_ps(x + i + 16), d = _mm256_loadu_ps(x + i + 24);
    Store::store(y + i, a);
    Store::store(y + i + 8, b);
    Store::store(y + i + 16, c);
    Store::store(y + i + 24, d);
  }
  for (; i < part.last; ++i) y[i] = x[i];
  Store::fence();
}

template <typename Store>
LOOM_AVX2 void add(const float* x, const float* z, float* y, Part part) {
  size_t i = part.first;
  for (; i + kStep <= part.last; i += kStep) {
    for (size_t lane = 0; lane < kStep; lane += 8) {
      const __m256 sum =
          _mm256_add_ps(_mm256_loadu_ps(x + i + lane), _mm256_loadu_ps(z + i + lane));
      Store::store(y + i + lane, sum);
    }
  }
  for (; i < part.last; ++i) y[i] = x[i] + z[i];
  Store::fence();
}

LOOM_AVX2 float lanes_sum(__m256 lanes) {
  const __m128 four = _mm_add_ps(_mm256_castps256_ps128(lanes), _mm256_extractf128_ps(lanes, 1));
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}

// Eight accumulators, as many as hide the latency of an addition.
LOOM_AVX2 float sum(const float* x, size_t count) {
  __m256 a = _mm256_setzero_ps(), b = a, c = a, d = a, e = a, f = a, g = a, h = a;
  size_t i = 0;
  for (; i + 64 <= count; i += 64) {
    a = _mm256_add_ps(a, _mm256_loadu_ps(x + i));
    b = _mm256_add_ps(b, _mm256_loadu_ps(x + i + 8));
    c = _mm256_add_ps(c, _mm256_loadu_ps(x + i + 16));
    d = _mm256_add_ps(d, _mm256_loadu_ps(x + i + 24));
    e = _mm256_add_ps(e, _mm256_loadu_ps(x + i + 32));
    f = _mm256_add_ps(f, _mm256_loadu_ps(x + i + 40));
    g = _mm256_add_ps(g, _mm256_loadu_ps(x + i + 48));
    h = _mm256_add_ps(h, _mm256_loadu_ps(x + i + 56));
  }
  const __m256 left = _mm256_add_ps(_mm256_add_ps(a, b), _mm256_add_ps(c, d));
  const __m256 right = _mm256_add_ps(_mm256_add_ps(e, f), _mm256_add_ps(g, h));
  float total = lanes_sum(_mm256_add_ps(left, right));
  for (; i < count; ++i) total += x[i];
  return total;
}

// `steps` fused multiply-adds in each of ten registers, none of which leaves the core: a fixed
// point, 2, that every start below it reaches exactly.
LOOM_AVX2 float multiply_add(size_t steps) {
  const __m256 half = _mm256_set1_ps(0.5f), one = _mm256_set1_ps(1.0f);
  __m256 r[10];
  for (int i = 0; i < 10; ++i) r[i] = _mm256_set1_ps(static_cast<float>(i) * 0.1f);
  for (size_t step = 0; step < steps; ++step) {
    for (__m256& value : r) {
      value = _mm256_fmadd_ps(value, half, one);
      asm volatile("" : "+x"(value));
    }
  }
  __m256 total = r[0];
  for (int i = 1; i < 10; ++i) total = _mm256_add_ps(total, r[i]);
  return lanes_sum(total) / 80;
}

// A result of one thread, in lines of its own.
struct alignas(128) Partial {
  float value = 0;
};

// The sum of what `work(thread)` returns on every thread.
Run reduced(unsigned threads, float* result, const std::function<float(size_t)>& work) {
  const auto crew = std::make_shared<Crew>(threads);
  const auto partials = std::make_shared<std::vector<Partial>>(threads);
  const std::function<void(size_t)> share = [=](size_t thread) {
    (*partials)[thread].value = work(thread);
  };
  return [=] {
    crew->run(share);
    *result = 0;
    for (const Partial& partial : *partials) *result += partial.value;
  };
}

Run split(unsigned threads, const std::function<void(size_t)>& work) {
  const auto crew = std::make_shared<Crew>(threads);
  return [=] { crew->run(work); };
}

Run reduction(const Problem& problem, unsigned threads, size_t count) {
  float* y = problem.out();
  if (problem.kind() == "fma") {
    return reduced(threads, y, [=](size_t) {
      return multiply_add(count / threads) / static_cast<float>(threads);
    });
  }
  const float* x = problem.in(0);
  return reduced(threads, y, [=](size_t thread) {
    const Part part = part_of(count, thread, threads);
    return sum(x + part.first, part.last - part.first);
  });
}

Run make(const Problem& problem, unsigned threads) {
  const size_t rows = problem.size(0), columns = problem.size(1);
  const size_t count = rows * columns * problem.size(2);
  const std::string& kind = problem.kind();
  if (kind == "fma" || kind == "sum") return reduction(problem, threads, count);
  const float* x = problem.in(0);
  const float* z = problem.input_count() > 1 ? problem.in(1) : nullptr;
  float* y = problem.out();
  const auto mine = [=](size_t thread) { return part_of(count, thread, threads); };
  if (kind == "copy") return split(threads, [=](size_t t) { copy<Plain>(x, y, mine(t)); });
  if (kind == "copy.stream") return split(threads, [=](size_t t) { copy<Stream>(x, y, mine(t)); });
  if (kind == "add") return split(threads, [=](size_t t) { add<Plain>(x, z, y, mine(t)); });
  if (kind == "add.stream") return split(threads, [=](size_t t) { add<Stream>(x, z, y, mine(t)); });
  if (kind == "row_sum") {
    return split(threads, [=](size_t thread) {
      for (size_t row = rows * thread / threads; row < rows * (thread + 1) / threads; ++row) {
        y[row] = sum(x + row * columns, columns);
      }
    });
  }
  fail(fmt::format("no loop is written for '{}'", kind));
}

}  // namespace
}  // namespace loom::bench

int main(int argc, char** argv) {
  loom::bench::require(__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"),
                       "the processor has no AVX2");
  return loom::bench::measure_cases(argc, argv, 1, loom::bench::make);
}
