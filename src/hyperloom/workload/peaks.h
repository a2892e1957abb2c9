// What this machine can do at most, measured.
#pragma once

#include "hyperloom/core/json.h"

namespace hyperloom::workload {

// [{"name": "compute_f32", "value", "unit": "FLOP/s" or "OP/s" or "B/s", "device": "cpu:0",
//   "method", "threads", "ts"}, ...]: one row for compute of each of f32, f64, i32 and i64, and one
// for "bandwidth". Each is the best of several rounds on `threads` threads (0: all) and takes a
// fraction of a second.
Json measure_peaks(unsigned threads);

}  // namespace hyperloom::workload
