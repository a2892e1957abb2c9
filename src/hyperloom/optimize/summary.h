// What became of every kernel of the analysis, for the report.
#pragma once

#include <set>
#include <string>

#include "hyperloom/core/environment.h"
#include "hyperloom/core/json.h"
#include "hyperloom/session/layout.h"

namespace hyperloom::optimize {

// {schema_version: 1, totals, rejection_breakdown, unattempted_reason_breakdown,
// failure_reason_breakdown, dispatch_skip_reason, field_glossary, by_kernel, top_takeaways}.
// `by_kernel` has one row for each kernel, hottest first: kernel_id, name, gpu_pct, category
// (INTEGRATED, KEEP_PENDING, ATTEMPTED_REJECTED, IN_FLIGHT, UNATTEMPTED), reason, attempts, outcome
// (success, fail, timeout, skip), error_class, micro_speedup. Pure.
Json session_summary(const Json& candidates, const Json& state, const Environment& environment,
                     const std::set<std::string>& in_flight);

// The same with the artifact that `state` names and the runs of the session; null where there was
// no analysis, or its artifact cannot be read.
Json session_summary(const session::Layout& layout, const Json& state,
                     const Environment& environment);

}  // namespace hyperloom::optimize
