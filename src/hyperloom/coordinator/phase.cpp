#include "hyperloom/coordinator/phase.h"

#include <fmt/format.h>

#include <algorithm>

#include "hyperloom/integrate/integrate.h"
#include "hyperloom/lane/gates.h"
#include "loom/base/hash.h"

namespace hyperloom::coordinator {
namespace {

constexpr PhaseRow kPhases[] = {
    {Phase::Prelude, "PRELUDE", 0.03, true},
    {Phase::FrameworkAgent, "FRAMEWORK_AGENT", 0.20, false},
    {Phase::Explore, "EXPLORE", 0.35, false},
    {Phase::KernelAgent, "KERNEL_AGENT", 0.35, true},
    {Phase::Sweep, "SWEEP", 0.05, true},
    {Phase::Close, "CLOSE", 0.02, true},
};
constexpr double kExtension = 0.05;
constexpr double kExtensionCap = 0.8;

const PhaseRow& row_of(Phase phase) { return kPhases[static_cast<size_t>(phase)]; }

bool collective_unfinished(const Json& state) {
  const Json& last = value_of(state, "last_collective");
  return flag_of(last, "requires_e2e_validation") && text_of(last, "integrate_decision").empty();
}

bool hinted(const Json& state, std::string_view hint) {
  return text_of(state, "phase_hint") == hint;
}

}  // namespace

std::span<const PhaseRow> phases() { return kPhases; }
std::string_view name_of(Phase phase) { return row_of(phase).name; }

std::optional<Phase> phase_named(std::string_view name) {
  const auto* found = std::ranges::find(kPhases, name, &PhaseRow::name);
  if (found == std::end(kPhases)) return std::nullopt;
  return found->phase;
}

std::optional<Phase> next_phase(Phase phase, bool native) {
  for (size_t i = static_cast<size_t>(phase) + 1; i < std::size(kPhases); ++i) {
    if (!native || kPhases[i].native) return kPhases[i].phase;
  }
  return std::nullopt;
}

double budget_share(Phase phase, bool native, int extensions) {
  double share = row_of(phase).share;
  if (native && !row_of(phase).native) return 0;
  if (native && phase == Phase::KernelAgent) {
    for (const PhaseRow& row : kPhases) share += row.native ? 0 : row.share;
  }
  const double cap = std::max(kExtensionCap, share);
  return std::min(cap, share + kExtension * std::max(0, extensions));
}

bool kernel_work_pending(const KernelView& view, const Environment& environment) {
  if (collective_unfinished(view.state)) return true;
  if (lane::collective_only(environment)) return false;
  if (text_of(value_of(view.state, "geak_pending"), "status") == "awaiting_rebench") return true;
  // Not the mere status: a record whose source a kept change has moved on is never run again.
  if (!integrate::ready_integrations(view.state).empty()) return true;
  return view.auto_enabled && view.selected > 0;
}

std::optional<Leave> leave_kernel(const KernelView& view, const Environment& environment) {
  if (view.seconds_cap > 0 && view.seconds_used >= view.seconds_cap) {
    return Leave{"kernel_budget_cap", ""};
  }
  if (view.seconds_used >= view.seconds_allowed) return Leave{"kernel_phase_budget_exhausted", ""};
  const bool pending = kernel_work_pending(view, environment);
  if (hinted(view.state, "skip_to_sweep") && !pending) return Leave{"kernel_no_more_leverage", ""};
  const bool idle =
      view.idle_ticks >= environment.integer("INFERENCE_OPTIMIZER_KERNEL_IDLE_MAX_TICKS") &&
      view.idle_seconds >= environment.number("INFERENCE_OPTIMIZER_KERNEL_IDLE_MIN_SECONDS");
  if (idle) return Leave{"kernel_no_more_leverage", "kernel_idle_no_progress"};
  return std::nullopt;
}

std::string progress_fingerprint(const Json& state) {
  Json facts = Json::object();
  for (const char* field :
       {"kernel_opt_task_attempts", "last_kernel_opt", "pending_kernel_integrations",
        "rejected_kernel_ids", "last_collective", "collective_attempts", "in_flight_kernel_ids"}) {
    facts[field] = value_of(state, field);
  }
  const Json& stack = value_of(state, "optimization_stack");
  facts["stack_length"] = stack.is_array() ? stack.size() : 0;
  return fmt::format("{:016x}", loom::hash_bytes(compact(facts)));
}

}  // namespace hyperloom::coordinator
