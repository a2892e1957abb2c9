// The results of a benchmark run as documents.
#pragma once

#include <string>

#include "loom/check/bench_run.h"

namespace loom::check {

// What the numbers are of.
struct DeviceIdentity {
  std::string device;     // as --device spells it
  std::string processor;  // as the system calls it
  unsigned processors = 0;
  unsigned threads = 0;  // that one launch may use
  uint64_t memory_bytes = 0;
  std::string code_generator;  // with its version and the processor that it compiles for
  std::string version;         // of this program
};
DeviceIdentity device_identity(const TestOptions& options, std::string version);
std::string device_json(const DeviceIdentity& device);

// Schema loom.bench.v0 (docs/formats/checks.md). With `raw` every batch of every item, too.
std::string bench_json(const BenchResults& results, const BenchOptions& options,
                       const DeviceIdentity& device, bool raw);
// One line each, for a file that grows while the run goes on.
std::string begin_event(const BenchPlan& plan, const BenchOptions& options,
                        const DeviceIdentity& device);
std::string item_event(const BenchResults& results, uint32_t item);
std::string comparison_event(const Compared& compared);
std::string end_event(const BenchResults& results);

// Tables for people.
std::string plan_text(const BenchPlan& plan);
std::string item_text(const BenchResults& results, uint32_t item);
std::string comparison_text(const Compared& compared);

}  // namespace loom::check
