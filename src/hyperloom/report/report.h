// What a person reads when a session is over, or while it runs. Every gain in it is read from the
// gain ledger; nothing is measured, added up or estimated here.
#pragma once

#include <string>
#include <vector>

#include "hyperloom/core/json.h"

namespace hyperloom::report {

// Of the documents of a session: manifest.json, state.json, the rows of decisions.jsonl, and the
// summary of the kernels (null where there was no analysis). Schema version 1: session_id,
// workload, device, device_peaks, outcome (improved | no_gain | nothing_measured), baseline_tput,
// final_tput, delta_tput, gain_pct (absent unless measured), unit, ledger, kept, configuration
// (that was kept beside the sources), decisions,
// kernels, waiting, not_run, failures, missing_engines, phases, stop_reason.
Json build(const Json& manifest, const Json& state, const std::vector<Json>& decisions,
           const Json& kernels);

// The same for people.
std::string markdown(const Json& report);

// The configuration that was kept, as flags of loom-run and the other programs, one a line.
std::string config_flags(const Json& report);

// The workload of the session with the kept configuration bound, as a workload file has it; its
// sources are those of the tree, whatever was kept of them.
Json kept_workload(const Json& report);

// "1034.25" of 1034250000 millionths: exact, without trailing zeros.
std::string decimal(int64_t millionths);

}  // namespace hyperloom::report
