// Which bytes of its launch arguments a kernel may touch.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "loom/command/launch_values.h"
#include "loom/command/plan.h"
#include "loom/ir/module.h"

namespace loom {

// A number inside a kernel, as far as a launch decides it: the sum of its terms and of something
// in [lo, hi], and in any case in [least, most].
struct LaunchRange {
  struct Term {
    bool workgroup = false;  // the position of the workgroup along axis `number`, else the value
    uint32_t number = 0;
    int64_t scale = 1;
  };
  std::vector<Term> terms;
  int64_t lo = 0;
  int64_t hi = 0;
  int64_t least = std::numeric_limits<int64_t>::min();
  int64_t most = std::numeric_limits<int64_t>::max();
};

// A dense view over the storage of a launch argument.
struct TouchedView {
  uint32_t argument = 0;
  LaunchRange offset;                // bytes
  std::vector<LaunchRange> extents;  // by axis
  uint32_t element_bytes = 0;
};

// The elements of a view that one operation touches.
struct TouchedWindow {
  uint32_t view = 0;               // of `KernelTouches::views`
  std::vector<LaunchRange> first;  // by axis; empty for the whole view
  std::vector<int64_t> lengths;    // by axis, elements
  Access access = Access::None;
};

struct KernelTouches {
  std::vector<LaunchValue> values;  // operands before their users
  std::vector<TouchedView> views;
  std::vector<TouchedWindow> windows;
  std::vector<Access> rest;  // by launch argument: to bytes that are in no window
};

// `access` is the access facet of the kernel, whose body must be open.
KernelTouches kernel_touches(const Module& module, OpId kernel, std::span<const Access> access);

struct TouchedRange {
  uint32_t argument = 0;
  uint64_t begin = 0;  // bytes of the argument
  uint64_t end = 0;
  Access access = Access::None;
};

// The ranges that one launch may touch. `counts` are its workgroups along x, y and z, empty when
// they are read from storage. A range whose end is not known reaches to the greatest offset.
std::vector<TouchedRange> touched_ranges(const KernelTouches& kernel,
                                         std::span<const Argument> arguments,
                                         std::span<const uint32_t> counts);

}  // namespace loom
