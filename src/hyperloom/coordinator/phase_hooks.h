// What each phase does when it is entered. The engines are called directly; what they did appears
// on the bus as requests and responses of the coordinator's own.
#pragma once

#include <string>

#include "hyperloom/coordinator/intent_router.h"
#include "hyperloom/coordinator/options.h"
#include "hyperloom/task/context.h"

namespace hyperloom::coordinator {

// Lent to a hook. `context.deadline` is that of the phase.
struct HookScope {
  task::Context context;
  IntentRouter& router;
  const Options& options;
};

// PRELUDE: baseline throughput, accuracy and correctness of the program as it is, and a profile.
// Errors besides those of state and bus: "baseline_failed", after which there is nothing to do.
Result<void> enter_prelude(const HookScope& scope);

// KERNEL, by the branches of the founding document and their one shared tail.
Result<void> enter_kernel(const HookScope& scope);

// SWEEP: what waits gets its turn, at most ten, then the small positives together.
Result<void> enter_sweep(const HookScope& scope);

// Runs the integrations that are ready, in their order, each as a request of its own; at most
// `limit`.
Result<void> integrate_ready(const HookScope& scope, size_t limit);

// Enters one result of an optimization into the ledger.
void record(const HookScope& scope, const Json& result);

// Closes the claim of a whole-program search once its candidate was judged.
Result<void> settle_geak(const HookScope& scope);

// A fresh profile and its analysis, unless throughput and configuration are what they were at the
// last one.
Result<void> reprofile(const HookScope& scope);

// Notes a step that did not run, with one word why; the last word of a step in a phase counts.
Result<void> note_not_run(const task::Context& context, const std::string& step,
                          const std::string& reason);

}  // namespace hyperloom::coordinator
