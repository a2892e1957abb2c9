// The KERNEL phase under the default backend order: one search over the whole program.
#pragma once

#include <string>

#include "hyperloom/optimize/kernel_run.h"

namespace hyperloom::optimize {

// Writes <session>/geak/handoff.json, searches all choices of the program by its throughput, and
// leaves <session>/geak/e2e_cycle<N>/result.json. `payload` may name the `cycle` (from 1).
//
// {status, kind: geak_e2e, speedup, result_path, handoff_path, error_class?, error?, candidate?}.
// It has GEAK_E2E_TIMEOUT_S, or what is left of the session without GEAK_BUDGET_MARGIN_S, and does
// not start with less than GEAK_MIN_RUN_S; unset, the last two are at most 5 and 10 percent of the
// session's `options.budget_seconds`.
//
// Status: ok, timeout, runner_crashed, no_result_json, baseline_reproduction_failed,
// runner_not_found, or skipped with reason insufficient_budget. A win is a claim: the `candidate`
// is a record as `pending_kernel_integrations` has them, and record_geak() queues it.
Json run_geak_phase(const Json& payload, const task::Context& context);
Json run_geak_phase(const Json& payload, const task::Context& context, const Engines& engines);

// Enters the outcome: `last_geak`, and with a claimed win `geak_pending` {integration_id, status:
// awaiting_rebench, speedup} and its record in the queue. Pure, called inside of
// SharedState::update().
void record_geak(Json& state, const Json& outcome);

}  // namespace hyperloom::optimize
