// The phases of a session, their shares of the budget, and when one is left. Pure functions of the
// state document and the time that was used.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "hyperloom/core/environment.h"
#include "hyperloom/core/json.h"

namespace hyperloom::coordinator {

enum class Phase : uint8_t { Prelude, FrameworkAgent, Explore, KernelAgent, Sweep, Close };

struct PhaseRow {
  Phase phase;
  std::string_view name;  // as in state and records
  double share;           // of the session's budget
  bool native;            // whether a native workload has it
};
std::span<const PhaseRow> phases();
std::string_view name_of(Phase phase);
std::optional<Phase> phase_named(std::string_view name);

// What follows it for a workload of this kind; nothing after CLOSE.
std::optional<Phase> next_phase(Phase phase, bool native);

// The share of the budget with the hints extend_kernel_budget and extend_explore_budget counted in
// (+0.05 for each, up to 0.8 or the starting share where that is larger). The shares of phases that
// the workload does not have go to KERNEL.
double budget_share(Phase phase, bool native, int extensions);

// Why a phase ends, and what shows it.
struct Leave {
  std::string reason;    // "kernel_no_more_leverage", ...
  std::string evidence;  // "" or "kernel_idle_no_progress"
};

struct KernelView {
  const Json& state;
  size_t selected = 0;  // candidates that the one selection function would dispatch
  bool auto_enabled = true;
  double seconds_used = 0;     // in the phase, over all resumes
  double seconds_allowed = 0;  // its share of the budget
  double seconds_cap = 0;      // absolute cap of the phase; 0 for none
  int idle_ticks = 0;          // ticks with an unchanged progress fingerprint
  double idle_seconds = 0;
};
// Whether something in KERNEL still waits to be done. A record that waits for review does not
// count.
bool kernel_work_pending(const KernelView& view, const Environment& environment);
std::optional<Leave> leave_kernel(const KernelView& view, const Environment& environment);

// Of what changes when the phase makes progress: ledger, last result, pending queue, rejected ids,
// stack length, collective fields, in-flight ids. 16 hexadecimal digits.
std::string progress_fingerprint(const Json& state);

}  // namespace hyperloom::coordinator
