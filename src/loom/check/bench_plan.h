// What the benchmarks of a module time: records and the samples behind them, each one once.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "loom/check/plan.h"

namespace loom::check {

// A `check.benchmark`, or one of the samples that it leaves open.
struct Benchmark {
  OpId op;
  std::string name;        // without '@'; the case's where the record has none
  uint32_t work_item = 0;  // that it shares with equal records
};

struct BenchPlan {
  // Of the cases that benchmarks name; its samples are the work items, in the order in which
  // benchmarks first need them.
  Plan plan;
  std::vector<Benchmark> benchmarks;  // in module order, open parameters in the order of samples
  // Benchmarks of cases that cannot be run or are skipped, with the reason.
  struct Refused {
    std::string name;
    uint32_t place = 0;  // of the case in the plan
  };
  std::vector<Refused> refused;
};

// `names` without '@'; none: all of them. A parameter that a record does not name keeps all of its
// values; so many samples that `kMostSamples` is passed are an issue of the case.
BenchPlan make_bench_plan(const Module& module, const std::vector<std::string>& names,
                          const DeviceTraits& device);

// Names of all benchmarks, in module order; unnamed ones are called like their case.
std::vector<std::string> benchmark_names(const Module& module);

}  // namespace loom::check
