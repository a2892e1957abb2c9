// The one integration that is under way, durable, so that a killed process is cleaned up after.
#pragma once

#include <string>
#include <vector>

#include "hyperloom/integrate/manifest.h"
#include "hyperloom/task/context.h"

namespace hyperloom::integrate {

// `state.active_integration` {integration_id, manifest, phase, started_at, log?}:
//   applying   the patch may be in the tree, nothing is decided
//   kept       KEEP is recorded; the patch is to be finalized and `log` to be logged
//   recorded   another decision is recorded and the tree restored; `log` is to be logged
// Written before the first change of the tree, taken away after the last step.
Result<void> begin_active(const task::Context& context, const std::string& integration_id,
                          const fs::path& manifest);
Result<void> clear_active(const task::Context& context);

// The row of the decision log that goes with a recorded decision: {key, row}.
Json log_entry(const std::string& key, Json row);
Result<void> write_log(const task::Context& context, const Json& entry);

// Takes a patch back. When that is not possible, `state.recovery_required` {manifest, error, ts}
// says so, and nothing is measured until recover() or the next integration could do it. The result
// of revert_patch().
Json revert_or_require(const task::Context& context, const fs::path& manifest);
// Tries again what an earlier revert could not do. Errors: "patch_revert_incomplete".
Result<void> settle_recovery(const task::Context& context);

}  // namespace hyperloom::integrate
