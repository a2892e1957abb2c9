// How much a kernel computes.
#pragma once

#include <array>
#include <cstdint>

#include "loom/ir/module.h"

namespace loom {

// Arithmetic of one workgroup, by element type: sums, differences, products, quotients, minima and
// maxima count as one a lane, fused multiply-adds as two; index arithmetic, conversions and
// transcendental functions do not count. It is the least that every launch does: loops count with
// the fewest iterations that are known, branches and while loops not at all.
struct KernelWork {
  uint64_t f32 = 0;
  uint64_t f64 = 0;
  uint64_t i32 = 0;
  uint64_t i64 = 0;
};

// Of a `kernel.def` with a body.
KernelWork kernel_work(const Module& module, OpId kernel);

// Makes `index` arguments that have one value in all launches of the module's command programs
// constants of the kernels' bodies, so that more is known there. The module still verifies, but the
// kernels are those of these launches alone.
void fix_launch_arguments(Module& module);

}  // namespace loom
