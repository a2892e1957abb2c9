// Whether a lane runs at KERNEL entry. Pure functions of the state and the environment; each gate
// says why it is closed, since "why did nothing run" has to have an answer.
#pragma once

#include <optional>
#include <string>

#include "hyperloom/core/environment.h"
#include "hyperloom/core/json.h"

namespace hyperloom::lane {

struct Gate {
  bool open = false;
  std::string reason;  // of a closed gate: one snake_case word, e.g. "skip_switch", "settled"

  static Gate opened() { return {true, ""}; }
  static Gate closed(std::string reason) { return {false, std::move(reason)}; }
};

// KERNEL_OPT_BACKEND_ORDER is byte-equal to "forge"; no trimming, no case folding.
bool forge_selected(const Environment& environment);
bool collective_only(const Environment& environment);

// Reasons: skip_switch, framework, settled.
Gate gemm_gate(const Json& state, const Environment& environment);
// Reasons: skip_switch, framework, no_profile_trace, settled.
Gate fusion_gate(const Json& state, const Environment& environment);
// `candidates`: the analysis artifact, from which the hottest eligible collective row is read where
// no roofline snapshot states a share. Reasons: skip_switch, single_rank, no_trace_analysis,
// settled, comm_share_unknown, comm_share_below_floor.
// Errors: "invalid_tp" when state.tp is not an integer.
Result<Gate> collective_gate(const Json& state, const Json& candidates,
                             const Environment& environment);

// A row of a collective, which belongs to its lane alone, wherever the row came from.
bool is_collective(const Json& row);
// A collective row that the lane may take: reusable, with a source, and one of the three
// operations.
bool eligible_collective(const Json& row);

// Identifies one analysis for the collective lane: the candidates' path and the hash of its bytes.
std::string analysis_key(const std::string& candidates_path, const std::string& content);

}  // namespace hyperloom::lane
