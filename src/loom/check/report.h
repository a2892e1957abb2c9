// The results of a test run as documents.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "loom/check/plan.h"
#include "loom/check/workers.h"

namespace loom::check {

// Everything that a run found out.
struct TestResults {
  const Plan* plan = nullptr;
  std::string device;
  std::vector<SampleReport> samples;               // by sample of the plan
  std::vector<std::vector<RenderedIssue>> issues;  // by case: why it cannot be run
  double seconds = 0;

  struct Counts {
    uint64_t cases = 0;
    uint64_t samples = 0;  // planned
    uint64_t passed = 0;
    uint64_t failed = 0;
    uint64_t skipped_cases = 0;
    uint64_t unplannable_cases = 0;
    uint64_t unplannable_samples = 0;
    bool executed() const { return passed + failed != 0; }
    bool good() const {
      return executed() && failed + unplannable_cases + unplannable_samples == 0;
    }
  };
  Counts counts() const;
};

// "3 cases, 12 samples on cpu: 10 passed, 1 failed, 1 case skipped, 0 unplannable".
std::string summary_text(const TestResults& results);

// Schema loom.test.v0 (docs/formats/checks.md).
std::string test_json(const TestResults& results);
// One test case a sample; skipped cases and those that cannot be run have one each.
std::string test_junit(const TestResults& results, const std::string& suite);

}  // namespace loom::check
