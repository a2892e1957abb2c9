// Runs samples in child processes, so that a kernel that hangs or breaks its process costs one
// sample and nothing else.
//
// A worker is forked when everything is planned and compiled, and takes sample after sample; it is
// replaced when it was stopped. Workers end with their parent, whatever ends that.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "loom/check/plan.h"
#include "loom/check/sample_runner.h"

namespace loom::check {

// A diagnostic as its worker rendered it.
struct RenderedIssue {
  std::string text;
  std::string json;
};

struct SampleReport {
  Outcome outcome = Outcome::Passed;
  double seconds = 0;
  std::vector<RenderedIssue> issues;
};

struct WorkerOptions {
  unsigned jobs = 0;          // worker processes; 0: one for each processor
  double timeout = 0;         // seconds of one sample; 0: no limit
  std::function<void()> ran;  // called after each sample
};

// Called in the worker process for each sample.
using SampleFunction = std::function<SampleReport(const Sample&)>;

// Runs all samples and calls `done` for each one, in their order. `stopped` makes the report of a
// sample whose worker did not finish it, for the reason given. `prepare` is called once in each
// worker and returns the function that runs its samples. The calling process must have no other
// threads that hold locks. False when no worker can be started, with what the system said.
struct WorkerCallbacks {
  std::function<SampleFunction()> prepare;
  std::function<SampleReport(const Sample&, const std::string& reason)> stopped;
  std::function<void(size_t number, SampleReport&&)> done;
};
bool run_in_workers(std::span<const Sample> samples, const WorkerOptions& options,
                    const WorkerCallbacks& callbacks, std::string& problem);

}  // namespace loom::check
