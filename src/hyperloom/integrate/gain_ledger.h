// Every gain in state and report comes from here: absolute throughputs that add up exactly.
#pragma once

#include <cstdint>
#include <string>

#include "hyperloom/core/json.h"

namespace hyperloom::integrate {

// Throughput as a whole number of millionths. Not finite or out of range: 0.
int64_t to_millionths(double throughput);
double from_millionths(int64_t millionths);

// The rows are `state.gain_ledger`: {seq, kind, integration_id, before, after, delta_tput, ts}, the
// three throughputs in millionths. Each row begins where the last one ended, the first one at
// `baseline_tput`, so the deltas sum to the last `after` minus the baseline.
//
// These run inside SharedState::update, on its document.

// A kept change, measured from `a` to `b` in its own pairs. Where `a` is not what the last row
// ended with, a `rebaseline` row comes first.
void add_keep(Json& state, const std::string& integration_id, double a, double b,
              const std::string& ts);
// A new measurement of an unchanged stack; no row when it is the same.
void add_rebaseline(Json& state, double measured, const std::string& ts);

// In millionths: what the stack is worth by the last row, the baseline when there is none.
int64_t ledger_final(const Json& state);
int64_t ledger_baseline(const Json& state);
// (final - baseline) / baseline in percent; 0 without a baseline.
double ledger_gain_pct(const Json& state);

// What is in the tree, in `optimization_stack` and in `current_best` is one set of changes; this
// moves the latter two and the ledger, on a KEEP and on nothing else.
struct Kept {
  std::string action = "integrate";
  std::string integration_id;
  double tput_a = 0;
  double tput_b = 0;
  double gain_pct = 0;
  Json extra_server_args = "";
  Json extra_envs = Json::object();
  Json entry = Json::object();  // kernel_id, target_file, task_group_key, patch_path, backend, ...
  std::string ts;
};
void lift_to_current_best(Json& state, const Kept& kept);

}  // namespace hyperloom::integrate
