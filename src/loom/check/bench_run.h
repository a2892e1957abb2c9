// A benchmark run: plan, compile, check, time. Nothing is timed before it is right.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "loom/check/bench_plan.h"
#include "loom/check/measure.h"
#include "loom/check/test_run.h"
#include "loom/check/timed_work.h"

namespace loom::check {

struct BenchOptions {
  TestOptions test;
  TimedWorkOptions work;
  MeasureOptions measure;
  bool profile_final_batch = false;  // see WorkItem::profile
};

struct WorkItem {
  enum class State : uint8_t {
    Planned,
    Passed,  // it is right, and not timed yet
    Measured,
    Failed,       // it is wrong, or went wrong while it was timed
    Unplannable,  // it cannot be run
  };
  State state = State::Planned;
  std::vector<RenderedIssue> issues;
  std::optional<Measurement> measurement;
  std::string profile;  // chrome_trace() of one more batch, where it is asked for
  uint64_t ring = 0;
  uint64_t set_bytes = 0;
  std::array<uint64_t, 2> work = {0, 0};  // by WorkUnit; 0: nothing is stated

  // Stated work over the median time; nothing without both.
  std::optional<double> gigabytes_per_second() const;
  std::optional<double> gigaflops() const;
};
std::string_view state_name(WorkItem::State state);

// Two benchmarks in turns.
struct Compared {
  uint32_t a = 0;  // work items
  uint32_t b = 0;
  std::string name_a;
  std::string name_b;
  ComparedMeasurement measured;
};

struct BenchResults {
  const BenchPlan* plan = nullptr;
  std::vector<WorkItem> items;  // by sample of the plan
  std::vector<Compared> comparisons;
  std::vector<std::string> warnings;
};

class BenchRun {
 public:
  // `launcher` is null where launches are interpreted. Everything outlives the run.
  BenchRun(const Module& module, const BenchPlan& plan, CpuLauncher* launcher,
           const BenchOptions& options);

  // Runs every work item once, in a worker process. False when none can be started.
  bool check(std::string& problem);
  // Times one item that passed.
  void time(uint32_t item);
  // Times two items that passed, in turns. False after reporting, for either of them.
  bool compare(uint32_t a, uint32_t b, std::string name_a, std::string name_b);

  const BenchResults& results() const { return results_; }
  void warn(std::string text) { results_.warnings.push_back(std::move(text)); }

 private:
  std::unique_ptr<TimedWork> work(uint32_t item, const TimedWork* like, Diagnostics& diagnostics);
  void fail(uint32_t item, const Diagnostics& diagnostics);

  const Module& module_;
  const BenchPlan& plan_;
  CpuLauncher* launcher_;
  const BenchOptions& options_;
  RunContext context_;
  BenchResults results_;
};

}  // namespace loom::check
