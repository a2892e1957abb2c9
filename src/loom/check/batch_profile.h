// When the dispatches of a batch ran.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "loom/runtime/trace.h"

namespace loom::check {

struct ProfiledDispatch {
  std::string kernel;      // without '@'
  uint64_t operation = 0;  // of the batch
  uint64_t input_set = 0;
  DispatchEvent event;  // times count from the beginning of the batch
};

// The trace as chrome://tracing and Perfetto read it: one event for what a thread ran of a
// dispatch.
std::string chrome_trace(std::span<const ProfiledDispatch> dispatches);

}  // namespace loom::check
