#include <algorithm>
#include <exception>
#include <set>
#include <tuple>

#include "hyperloom/integrate/integrate.h"
#include "hyperloom/integrate/record.h"

namespace hyperloom::integrate {
namespace {

bool is_ready(const Json& state, const Settled& settled, const Json& record) {
  const bool has_turn = text_of(record, "status") == "waiting" && flag_of(record, "turn");
  if (!is_queued(record) && !has_turn) return false;
  const Json& entry =
      value_of(value_of(state, "kernel_opt_task_attempts"), text_of(record, "task_key"));
  if (text_of(entry, "integration_status") == "integrated") return false;
  return !settled.is_rejected(record) && !settled.is_stacked(record);
}

void mark_dispatch_failed(const task::Context& context, const std::string& id,
                          const std::string& why) {
  (void)context.state().update("integrate.dispatch_failed", [&](Json& state) {
    record_integration(state, {.key = "dispatch|" + id,
                               .integration_id = id,
                               .judgement = {Decision::Revert, "dispatch_failed"},
                               .status = "failed",
                               .error_class = "handler_exception",
                               .fault = true,
                               .ts = utc_now()});
    Json& record = state["pending_kernel_integrations"][id];
    if (is_queued(record)) record["status"] = "dispatch_failed";
    record["error"] = why;
  });
}

}  // namespace

std::vector<std::string> ready_integrations(const Json& state) {
  std::vector<const Json*> ready;
  const Json& records = value_of(state, "pending_kernel_integrations");
  if (!records.is_object()) return {};
  const Settled settled(state);
  for (const auto& [id, record] : records.items()) {
    if (is_ready(state, settled, record)) ready.push_back(&record);
  }
  std::ranges::sort(ready, {}, [](const Json* record) {
    return std::tuple(-number_of(*record, "trace_gpu_pct"), -number_of(*record, "micro_speedup"),
                      text_of(*record, "integration_id"));
  });
  std::vector<std::string> ids;
  std::set<std::string> sources;
  for (const Json* record : ready) {
    const std::string id = text_of(*record, "integration_id");
    if (sources.insert(text_of(*record, "source_file", id)).second) ids.push_back(id);
  }
  return ids;
}

Json integrate_queued(const Json& payload, const task::Context& context) {
  try {
    return integrate(payload, context);
  } catch (const std::exception& raised) {
    const std::string id = text_of(payload, "integration_id");
    mark_dispatch_failed(context, id, raised.what());
    return {{"status", "failed"},
            {"decision", decision_name(Decision::Revert)},
            {"decision_reason", "dispatch_failed"},
            {"error_class", "handler_exception"},
            {"error", raised.what()},
            {"integration_id", id}};
  }
}

}  // namespace hyperloom::integrate
