// What an integrate request is about, after everything that it leaves out was filled in.
#pragma once

#include <string>
#include <vector>

#include "hyperloom/integrate/decision.h"
#include "hyperloom/integrate/plan.h"
#include "hyperloom/task/context.h"

namespace hyperloom::integrate {

struct Inputs {
  std::string integration_id;
  std::string request_id;     // of the bus row that asked, and
  std::string redispatch_of;  // of the one that a kill interrupted; may be empty
  Json record;                // the pending record, null when there is none
  Json ledger_entry;          // of the task in the attempt ledger, null when there is none
  PatchRequest patch;
  std::vector<PatchRequest> more;  // of a combined integration: the other members' patches
  std::vector<Json> members;       // and the records of all of them
  std::string action = "integrate";
  bool has_patch = false;  // of patch and target, both are there
  bool env_only = false;   // neither is, and there is configuration to try
  std::vector<std::string> missing;
  Json extra_envs = Json::object();  // of the B side: all of them
  Json extra_server_args = "";
  double base_tput = 0;  // reported only
  double keep_threshold_pct = 1;
  double timeout_sec = 7800;
  double call_timeout_sec = 120;
  double sample_seconds = 0.2;
  size_t max_pairs = 40;
  bool dry_run_patch = false;
  bool defer_finalize = false;
  std::string preapplied_manifest;
  // Carried into the result: kernel_id, task_group_key, identity_route, artifact_kind,
  // gap_canonical_id, model_path, ...
  Json carried = Json::object();

  static Result<Inputs> read(const Json& payload, const task::Context& context);
  // Of several small positives that are tried as one. Members whose patch cannot be read any more
  // are left out.
  static Inputs combine(std::vector<Json> members, const task::Context& context);
  // The candidate as it was queued, with what the trace says of its kernels: for the plausibility
  // bound. Empty when no share of end-to-end time is known.
  std::vector<ChangedKernel> kernels(const Json& state) const;
};

}  // namespace hyperloom::integrate
