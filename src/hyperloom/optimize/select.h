// Which kernels are optimized next: the one function that the entry gate, the batch, requests, the
// pending-work test and the report all ask.
#pragma once

#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "hyperloom/core/environment.h"
#include "hyperloom/core/json.h"
#include "hyperloom/task/context.h"

namespace hyperloom::optimize {

// Why a row is left out.
enum class SkipReason : uint8_t {
#define HL_SKIP(name, word, meaning) name,
#include "hyperloom/optimize/skip_reasons.def"
#undef HL_SKIP
};
struct SkipReasonRow {
  std::string_view word;
  std::string_view meaning;
};
// In the order of the enumeration.
std::span<const SkipReasonRow> skip_reasons();

struct Skipped {
  std::string kernel_id;
  SkipReason reason = SkipReason::NoSource;
  std::string text;    // the reason's word, with "=<value>" where it has one
  std::string detail;  // more of it: the gate, the row of the may-run-again table; may be empty
  Json row;
};

// Each row of the artifact is in exactly one of the two lists.
struct Selection {
  // Set when nothing could be selected because something could not be read:
  // "candidates_unreadable" or "state_unreadable". Both lists are empty then.
  std::string failure;
  std::string message;
  // Copies of rows by effective share, largest first, then by id. One of a group has its
  // `task_group`; one that stands for others of its source has `opfanout_collapsed_ids`.
  std::vector<Json> selected;
  std::vector<Skipped> skipped;  // in the order of the artifact

  std::vector<std::string> ids() const;
  const Skipped* find_skipped(std::string_view kernel_id) const;
};

// `candidates` is the analysis artifact, `state` the session's document, `in_flight` the ids that
// are worked on at this moment. Pure.
Selection select_candidates(const Json& candidates, const Json& state,
                            const Environment& environment,
                            const std::set<std::string>& in_flight = {});

// The same with the artifact of `last_trace_analyze`, the session's state and in_flight_ids().
Selection select_candidates(const task::Context& context);
// Ids of that selection.
std::vector<std::string> untried_hot_reusable_kernels(const task::Context& context);
// The gate of the entry batch: whether the switch is on and the selection holds something.
bool kernel_opt_work_remains(const task::Context& context, bool auto_kernel_opt_enabled);

// max(gpu_pct, vendor_playbook_aggregate_gpu_pct), in percent.
double effective_share(const Json& row);
// max(HYPERLOOM_KERNEL_OPT_MIN_GPU_PCT, vendor_playbook_min_gpu_pct_floor), in percent.
double effective_floor(const Json& row, const Environment& environment);

}  // namespace hyperloom::optimize
