#include "hyperloom/integrate/small_positives.h"

#include <algorithm>
#include <set>
#include <tuple>

#include "hyperloom/integrate/integrate.h"

namespace hyperloom::integrate {
namespace {

// Measured gains first, then what a micro-benchmark promises.
bool is_better(const Json& a, const Json& b) {
  const auto rank = [](const Json& row) {
    return std::tuple(-number_of(row, "gain_pct"), -number_of(row, "micro_speedup"),
                      text_of(row, "integration_id"));
  };
  return rank(a) < rank(b);
}

}  // namespace

std::vector<Json> combinable(const Json& state) {
  std::vector<Json> rows;
  const Json& all = value_of(state, "small_positives");
  if (!all.is_object()) return rows;
  const Settled settled(state);
  for (const auto& [id, row] : all.items()) {
    if (text_of(row, "status") != "small_positive" || flag_of(row, "stack_resolved")) continue;
    if (!settled.is_stacked(row)) rows.push_back(row);
  }
  std::ranges::sort(rows, is_better);
  std::set<std::string> sources;
  // Distinct files throughout: one that shares any with a better one is left out.
  std::erase_if(rows, [&](const Json& row) {
    const auto files = files_of(row);
    const bool shares =
        std::ranges::any_of(files, [&](const std::string& file) { return sources.contains(file); });
    if (!shares) sources.insert(files.begin(), files.end());
    return shares;
  });
  return rows;
}

void begin_members(Json& state, const std::vector<Json>& members) {
  state.erase("pending_stack_validation_apply_results");
  state.erase("pending_stack_validation_result");
  for (const Json& member : members) {
    state["small_positives"][text_of(member, "integration_id")]["stack_validation_in_progress"] =
        true;
  }
}

void note_applied(Json& state, const std::vector<Json>& members, const Json& applied) {
  Json rows = Json::array();
  for (const Json& member : members) {
    rows.push_back({{"integration_id", text_of(member, "integration_id")},
                    {"source_file", value_of(member, "source_file")},
                    {"apply_result", applied}});
  }
  state["pending_stack_validation_apply_results"] = std::move(rows);
}

void resolve_members(Json& state, const std::vector<Json>& members, const Outcome& outcome) {
  const bool keep = outcome.judgement.decision == Decision::Keep;
  state["pending_stack_validation_result"] = {
      {"integration_id", outcome.integration_id},
      {"decision", decision_name(outcome.judgement.decision)},
      {"decision_reason", outcome.judgement.reason},
      {"ts", outcome.ts}};
  Json sources = Json::array();
  for (const Json& member : members) {
    const std::string id = text_of(member, "integration_id");
    Json& row = state["small_positives"][id];
    row["stack_validation_in_progress"] = false;
    // What could not be judged may be tried again.
    row["stack_resolved"] = outcome.judgement.decision != Decision::NeedsReview && !outcome.fault;
    for (const std::string& file : files_of(member)) sources.push_back(file);
    if (!keep) continue;
    row["status"] = "integrated";
    Json& ledger = state["kernel_opt_task_attempts"];
    if (const std::string task = text_of(member, "task_key"); ledger.contains(task)) {
      ledger[task]["integration_status"] = "integrated";
    }
    Json& pending = state["pending_kernel_integrations"];
    if (pending.contains(id)) pending[id]["status"] = "integrated";
  }
  if (keep) state["optimization_stack"].back()["source_files"] = std::move(sources);
}

Json integrate_small_positives(const task::Context& context) {
  std::vector<Json> members;
  context.state().read([&](const Json& state) { members = combinable(state); });
  Inputs inputs = Inputs::combine(std::move(members), context);
  const bool alone_is_known =
      inputs.members.size() == 1 && flag_of(inputs.members.front(), "measured_end_to_end");
  if (inputs.members.empty() || alone_is_known) {
    return {{"status", "skipped"}, {"reason", "too_few_small_positives"}};
  }
  const auto begun = context.state().update(
      "integrate.combine", [&](Json& state) { begin_members(state, inputs.members); });
  if (!begun) {
    return {{"status", "failed"},
            {"error_class", begun.error().error_class},
            {"error", begun.error().message}};
  }
  return run_integration(context, std::move(inputs));
}

}  // namespace hyperloom::integrate
