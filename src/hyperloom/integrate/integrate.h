// Puts candidates into the tree, measures them against what was there, and keeps what is better.
#pragma once

#include <string>
#include <vector>

#include "hyperloom/core/json.h"
#include "hyperloom/task/context.h"

namespace hyperloom::integrate {

// Handles a request of kind `integrate` or `apply_patch`. Whatever happens, the tree ends as it was
// unless a KEEP is recorded; the result says {status, decision, decision_reason, ...} and the state
// and the decision log have it. Holds the lane workspace_mutation and the tree's lock throughout,
// the benchmark lane and the device while it measures.
//
// Beside the fields of the request: `request_id` is the bus row that asks; with `redispatch_of`, a
// request that a kill interrupted after its outcome was recorded gets that outcome. `max_pairs`,
// `sample_seconds` and `call_timeout_sec` bound the measuring.
Json integrate(const Json& payload, const task::Context& context);

// The key under which `state.rejected_kernel_patches` would hold the patch that a request of kind
// `integrate` names, by its id, else by its content; "" where it names none that could be skipped:
// nothing readable, one that is in the tree already, or a request whose outcome was recorded.
std::string patch_key(const Json& payload, const task::Context& context);

// Ids of what may be integrated at this moment, best first: pending, and waiting whose turn has
// come, by trace share, then micro speed-up, one for each source file.
std::vector<std::string> ready_integrations(const Json& state);
// integrate() for a record of the queue, named by `integration_id`. An exception is a result like
// any other here: it marks the record `dispatch_failed` and counts as a fault, so that the record
// is ready once more and rejected the second time.
Json integrate_queued(const Json& payload, const task::Context& context);

// All small positives of distinct files as one change that has to clear the threshold itself.
// Status "skipped" with its reason when there are too few.
Json integrate_small_positives(const task::Context& context);

// On start: takes back, or makes final, what a killed process left, and reports each action
// {action: revert | finalize | log, integration_id, phase, result}. Waiting records get a turn.
std::vector<Json> recover(const task::Context& context);
// At SWEEP entry: each waiting record may be tried once more.
Result<void> give_waiting_their_turn(const task::Context& context);

// The stack is measured anew after each KEEP; where a kill came between, `state.rebaseline_due`
// says so, and this makes up for it. Nothing to do otherwise. Errors: those of a bench.
Result<void> settle_rebaseline(const task::Context& context);
// Measures what is kept, from a fresh start, and enters a difference into the gain ledger as a
// `rebaseline` row. `tag` names the occasion. Errors: those of a bench, "unwritable_file".
Result<double> rebaseline_stack(const task::Context& context, const std::string& tag);

}  // namespace hyperloom::integrate
