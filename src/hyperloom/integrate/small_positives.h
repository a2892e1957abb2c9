// Candidates that gained too little alone, tried as one change.
#pragma once

#include "hyperloom/integrate/inputs.h"
#include "hyperloom/integrate/record.h"

namespace hyperloom::integrate {

// Of `state.small_positives`: those that may be combined, the best of each source file, best first.
std::vector<Json> combinable(const Json& state);

// Inside SharedState::update: the checkpoints `pending_stack_validation_apply_results`,
// `pending_stack_validation_result`, and of the members `stack_validation_in_progress` and
// `stack_resolved`. A KEEP is the members' too; anything else changes nothing of their rejections.
void begin_members(Json& state, const std::vector<Json>& members);
void note_applied(Json& state, const std::vector<Json>& members, const Json& applied);
void resolve_members(Json& state, const std::vector<Json>& members, const Outcome& outcome);

// The one path of every integration; see integrate().
Json run_integration(const task::Context& context, Inputs inputs);

}  // namespace hyperloom::integrate
