// One run of the optimization tool: one kernel, from its candidate row to a proposal.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "hyperloom/optimize/backend.h"

namespace hyperloom::optimize {

// What the engine is made of; tests put their own in.
struct Engines {
  Backends backends;
  // The choices in the workload's tree, of one kernel or, when that is empty, of all.
  std::function<Result<std::unique_ptr<Space>>(const task::Context&, const std::string& kernel)>
      open_space;
};
const Engines& installed_engines();

struct KernelTask {
  Json candidate;  // with its task_group
  double budget_minutes = 90;
  double kernel_budget_minutes = 90;
  bool dry_run = false;
  Json overrides = Json::object();  // of verification fields; in a dry run only
  Json warnings = Json::array();    // {code, message}
  Json backend_selection;
};

// The candidate's source below the workload's tree, relative to it where it is inside.
std::filesystem::path relative_source(const workload::Workload& workload, const Json& candidate);
// The kernel's symbol: source_function, else name; without '@'.
std::string symbol_of(const Json& candidate);

// The result object of the behaviour specification, which record_kernel_opt() takes. Whatever goes
// wrong is in it: `status` ok, failed, timeout or skipped, and `error_class`. Threads: any, for
// different tasks. `quiet` as for Judge.
Json optimize_kernel(const task::Context& context, const KernelTask& task, const Engines& engines,
                     QuietMachine* quiet);

}  // namespace hyperloom::optimize
