// Rows that the state keeps of what ran and what failed.
#pragma once

#include <string>

#include "hyperloom/core/json.h"

namespace hyperloom::coordinator {

// Appends to `lifecycle_events`, of which the newest 500 are kept: {seq, ts, phase, step, label,
// status, detail, artifacts, duration_s}. `row` has what is known of them.
void add_lifecycle(Json& state, Json row);

// Appends to `last_action_failures`, of which the newest 30 are kept. `result` is what the handler
// returned; its `error_class`, `error`, `stderr_tail`, `stderr_log_path`, `workspace`,
// `raw_result_path`, `reported_success` and `variant_name` are taken over. A failure of the same
// task and class replaces its former row.
void add_failure(Json& state, const std::string& action, const std::string& task_id,
                 const Json& result);

}  // namespace hyperloom::coordinator
