#include <algorithm>
#include <exception>
#include <set>
#include <tuple>

#include "hyperloom/integrate/integrate.h"
#include "hyperloom/integrate/record.h"

namespace hyperloom::integrate {
namespace {

bool is_ready(const Json& state, const Settled& settled, const Json& record) {
  const std::string status = text_of(record, "status");
  if (status != "pending" && !(status == "waiting" && flag_of(record, "turn"))) return false;
  const Json& entry =
      value_of(value_of(state, "kernel_opt_task_attempts"), text_of(record, "task_key"));
  if (text_of(entry, "integration_status") == "integrated") return false;
  return !settled.is_rejected(record) && !settled.is_stacked(record);
}

// An exception on the way counts as a fault of the candidate.
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
    if (text_of(record, "status") == "pending") record["status"] = "dispatch_failed";
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

std::vector<Json> integrate_pending(const task::Context& context, size_t limit) {
  std::vector<Json> results;
  std::set<std::string> tried;
  while (results.size() < limit && !context.stopped()) {
    // Each result changes what is ready: the stack grows, records are rejected or wait.
    std::vector<std::string> ready;
    context.state().read([&](const Json& state) { ready = ready_integrations(state); });
    const auto next =
        std::ranges::find_if(ready, [&](const std::string& id) { return !tried.contains(id); });
    if (next == ready.end()) break;
    tried.insert(*next);
    try {
      results.push_back(integrate({{"integration_id", *next}}, context));
    } catch (const std::exception& raised) {
      mark_dispatch_failed(context, *next, raised.what());
      results.push_back({{"status", "failed"},
                         {"error_class", "handler_exception"},
                         {"error", raised.what()},
                         {"integration_id", *next}});
    }
  }
  return results;
}

}  // namespace hyperloom::integrate
