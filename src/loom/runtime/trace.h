// What an issue did, dispatch by dispatch.
#pragma once

#include <cstdint>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "loom/command/plan.h"

namespace loom {

struct DispatchEvent {
  uint32_t command = 0;  // of the plan
  uint32_t thread = 0;   // numbered in the order in which they first recorded
  uint64_t begin = 0;    // nanoseconds of a steady clock
  uint64_t end = 0;
  uint64_t first_workgroup = 0;  // the part of the dispatch that this thread ran
  uint64_t last_workgroup = 0;   // one past it
};

// Collects events. Any number of threads may record at once.
class Trace {
 public:
  // The thread is filled in.
  void record(DispatchEvent event);
  // In order of their begin; only while nobody records.
  std::vector<DispatchEvent> events() const;

 private:
  std::mutex mutex_;
  std::vector<std::thread::id> threads_;
  std::vector<DispatchEvent> events_;
};

// A document in Chrome's trace format, one complete event each: name is the entry, the arguments
// are command, workgroups and schedule wave. Microseconds since the first event.
std::string chrome_trace(const PreparedPlan& plan, const PreparedProgram& program,
                         std::span<const DispatchEvent> events);

}  // namespace loom
