// The handler of trace_analyze, and the profile that it analyzes.
#pragma once

#include <string>

#include "hyperloom/core/json.h"
#include "hyperloom/task/context.h"

namespace hyperloom::trace {

// Profiles what the tree and `current_best` hold at this moment: one median issue, written to
// <session>/profiles/<tag>/trace.json, which `state.last_profile_trace` then names. Holds the
// profile lane and the device. Errors: those of a bench, "unwritable_file".
Result<std::string> profile(const task::Context& context, const std::string& tag);

// A request of kind trace_analyze. Writes the analysis into the session's run folder
// (kernel_candidates.json, tracelens/, session_state.json, its log and status) and the roofline
// into the session's reports; peaks of the device are measured where the session has none yet.
// {status: ok, candidates_path, kernel_roofline_path, hot_kernels, skipped_kernels, task_groups,
// trace_health_warnings, trace_report_path, steady_state_trace, ...}; failed with error_class
// missing_trace_input, invalid_trace, not_available (a trace of another producer), unreadable_file.
Json trace_analyze(const Json& payload, const task::Context& context);

// What the state keeps of an analysis that succeeded: `last_trace_analyze` and a row of
// `roofline_snapshots`. Called inside SharedState::update.
void record_trace_analyze(Json& state, const Json& payload, const Json& result);

}  // namespace hyperloom::trace
