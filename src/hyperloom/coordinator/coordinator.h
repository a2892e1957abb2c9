// The loop of a session: phases, turns of the roles, and what both cause.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "hyperloom/agent/orchestrator.h"
#include "hyperloom/bus/tasks.h"
#include "hyperloom/coordinator/intent_router.h"
#include "hyperloom/coordinator/options.h"
#include "hyperloom/coordinator/phase.h"
#include "hyperloom/task/context.h"

namespace hyperloom::coordinator {

struct Ended {
  bool measured = false;    // there is a baseline
  bool over = false;        // CLOSE is done; false after an interruption, which resume continues
  std::string stop_reason;  // why it ended early; empty otherwise
};

// One session from where its state stands. Everything in the context outlives it. One caller.
class Coordinator {
 public:
  Coordinator(const task::Context& context, bus::Tasks& tasks, Options options,
              std::vector<std::unique_ptr<agent::Orchestrator>> roles);
  ~Coordinator();

  // Runs to the end, or until the context's stop token is set; the report is written either way.
  // Errors: those of state and bus, with which no session can go on.
  Result<Ended> run();
  // Takes up what a kill left and answers one request as if orchestration had sent it, without the
  // loop. The result of the handler, or a denial as {status: denied, rule, reason, hint}.
  Result<Json> request(const std::string& kind, const Json& params);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// The fields that the coordinator owns, for a new session: framework, phase, switches, ...
Json initial_state(const workload::Workload& workload, const Options& options,
                   const Environment& environment);

// Writes reports/report.json and reports/report.md from the session's documents.
Result<Json> write_report(const task::Context& context);

}  // namespace hyperloom::coordinator
