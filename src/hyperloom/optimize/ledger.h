// The attempt ledger: what is remembered of every optimization, and what follows from it.
#pragma once

#include <string>

#include "hyperloom/core/environment.h"
#include "hyperloom/core/json.h"

namespace hyperloom::optimize {

// What one result did to the state.
struct Recorded {
  bool counted = false;         // whether it was an attempt at all
  std::string task_key;         // of its ledger entry
  std::string integration_id;   // of the KEEP that is queued, or of the small positive
  std::string rejected_reason;  // why the task was given up by this result; empty if it was not
  size_t looked_at = 0;         // entries and records that were read, whatever the ledger holds
};

// Enters one result of run_optimization into `kernel_opt_task_attempts`, `kernel_opt_kernel_index`,
// `rejected_kernel_ids`, `pending_kernel_integrations`, `small_positives`, `last_kernel_opt` and
// `last_kernel_opt_dispatch_skip`. The aggregate of a batch, a dry run, an engine that is not
// installed and an interruption are no attempts and leave the ledger as it is.
//
// Touches nothing but the state document: called inside of SharedState::update(). The time it takes
// does not grow with the number of entries (besides the logarithm of a map).
Recorded record_kernel_opt(Json& state, const Json& result, const Environment& environment);

// "kernel-integration:" and the sha256 of {artifact_bundle, artifact_path, source_file, task_key}.
std::string integration_id(const std::string& task_key, const std::string& source_file,
                           const std::string& artifact_path, const Json& artifact_bundle);

// Attempts so far of the task that `row` is, 0 when there is none: the ordinal of the next one.
int64_t attempts_of(const Json& state, const Json& row);

}  // namespace hyperloom::optimize
