#include <algorithm>

#include "hyperloom/agent/orchestrator.h"

namespace hyperloom::agent {
namespace {

Json request(const std::string& kind, Json params) {
  return {{"intent_type", "request"},
          {"payload",
           {{"target_agent", "kernel_agent"}, {"kind", kind}, {"params", std::move(params)}}}};
}

// The candidates' id of a kernel, by symbol or id; empty when it is not among them.
std::string id_of(const Json& candidates, const std::string& kernel) {
  const Json& rows = value_of(candidates, "hot_kernels");
  if (!rows.is_array()) return "";
  for (const Json& row : rows) {
    if (text_of(row, "name") == kernel || text_of(row, "source_function") == kernel ||
        text_of(row, "kernel_id") == kernel) {
      return text_of(row, "kernel_id");
    }
  }
  return "";
}

bool failed_before(const Json& state, const std::string& action) {
  const Json& failures = value_of(state, "last_action_failures");
  return failures.is_array() && std::ranges::any_of(failures, [&](const Json& row) {
           return text_of(row, "action") == action && text_of(row, "error_class") != "interrupted";
         });
}

bool attempted(const Json& state, const std::string& kernel_id) {
  const Json& ledger = value_of(state, "kernel_opt_task_attempts");
  return ledger.is_object() && std::ranges::any_of(ledger, [&](const Json& entry) {
           return number_of(entry, "attempts") > 0 &&
                  (text_of(entry, "current_kernel_id") == kernel_id ||
                   text_of(entry, "kernel_id") == kernel_id);
         });
}

class Scripted : public Orchestrator {
 public:
  explicit Scripted(std::string kernel) : kernel_(std::move(kernel)) {}
  std::string_view role() const override { return "orchestration"; }

  Result<Json> turn(const Turn& turn) override {
    Json intents = Json::array();
    if (turn.phase == "PRELUDE") ask_for_analysis(turn, intents);
    if (turn.phase == "KERNEL_AGENT") {
      if (!kernel_.empty()) ask_for_kernel(turn, intents);
      if (intents.empty()) hint_at_the_end(turn, intents);
    }
    return Json{{"intents", std::move(intents)}};
  }

 private:
  static void ask_for_analysis(const Turn& turn, Json& intents) {
    const std::string trace = text_of(turn.state, "last_profile_trace");
    const Json& last = value_of(turn.state, "last_trace_analyze");
    if (trace.empty() || text_of(last, "trace_input") == trace) return;
    if (failed_before(turn.state, "trace_analyze")) return;
    intents.push_back(request("trace_analyze", {{"trace_input", trace}}));
  }

  void ask_for_kernel(const Turn& turn, Json& intents) const {
    const std::string id = id_of(turn.candidates, kernel_);
    if (id.empty() || attempted(turn.state, id)) return;
    if (failed_before(turn.state, "run_optimization")) return;
    intents.push_back(request("run_optimization", {{"kernel_id", id}}));
  }

  static void hint_at_the_end(const Turn& turn, Json& intents) {
    if (turn.work_pending || text_of(turn.state, "phase_hint") == "skip_to_sweep") return;
    intents.push_back({{"intent_type", "update_state"},
                       {"payload", {{"changes", {{"phase_hint", "skip_to_sweep"}}}}}});
  }

  std::string kernel_;
};

}  // namespace

std::unique_ptr<Orchestrator> scripted(std::string kernel) {
  return std::make_unique<Scripted>(std::move(kernel));
}

}  // namespace hyperloom::agent
