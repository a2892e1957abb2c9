// The handler of run_optimization.
#pragma once

#include <functional>

#include "hyperloom/optimize/kernel_run.h"

namespace hyperloom::optimize {

// Called with each result of a batch as soon as it is there, one call at a time, on any thread.
using RecordPartial = std::function<void(const Json& sub_result)>;

// What is selected is optimized, up to `max_parallel` kernels side by side. The answer is the
// result of the one kernel, or of a batch the best one with batch_mode, batch_kernel_ids,
// backend_order, max_parallel, parallel_backends, batch_results and backend_fallback_attempts. A
// single result is for the caller to record; those of a batch went through `record_partial`.
//
// Nothing to do is `skipped` with a reason and `left_out`; bad input is `failed` with
// missing_trace_analyze, missing_candidates_artifact, candidates_unreadable, state_unreadable or
// invalid_payload, which names the field.
Json run_optimization(const Json& payload, const task::Context& context,
                      const RecordPartial& record_partial);
Json run_optimization(const Json& payload, const task::Context& context,
                      const RecordPartial& record_partial, const Engines& engines);

}  // namespace hyperloom::optimize
