// KERNEL entry: the branches of the founding document and the one tail that they share.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "hyperloom/coordinator/phase.h"
#include "hyperloom/coordinator/phase_hooks.h"
#include "hyperloom/core/time.h"
#include "hyperloom/integrate/gain_ledger.h"
#include "hyperloom/integrate/integrate.h"
#include "hyperloom/lane/engines.h"
#include "hyperloom/lane/gates.h"
#include "hyperloom/optimize/geak_phase.h"
#include "hyperloom/optimize/ledger.h"
#include "hyperloom/optimize/run.h"
#include "hyperloom/optimize/select.h"
#include "hyperloom/trace/analyze.h"
#include "loom/base/hash.h"

namespace hyperloom::coordinator {
namespace {

constexpr double kSameThroughput = 1e-5;  // relative

Json state_of(const HookScope& scope) {
  Json copy;
  scope.context.state().read([&](const Json& state) { copy = state; });
  return copy;
}

Result<void> hint(const HookScope& scope, const char* word) {
  return scope.context.state().update("phase_hint",
                                      [&](Json& state) { state["phase_hint"] = word; });
}

// What the kernels run under besides their sources.
std::string configuration_fingerprint(const Json& state, const std::string& tree_hash) {
  const Json& best = value_of(state, "current_best");
  return loom::sha256_hex(compact({{"tree", tree_hash},
                                   {"envs", value_of(best, "extra_envs")},
                                   {"args", value_of(best, "extra_server_args")}}));
}

// What became of a step of the entry, for the record of the phase. `step` as in not_run.
void note_entry(Json& state, const std::string& step, const Json& evidence) {
  static const std::map<std::string, std::string> names = {{"run_gemm_tuning", "gemm_tuning"},
                                                           {"run_fusion", "fusion"},
                                                           {"run_collective", "collective"},
                                                           {"kernel_opt_batch", "batch"}};
  const auto name = names.find(step);
  if (name == names.end()) return;
  Json& entry = state["phase_entry"];
  if (!entry.is_object()) entry = Json::object();
  entry[name->second] = evidence;
}

// Only the newest row of a step and phase counts.
void add_not_run(Json& state, const std::string& step, const std::string& reason) {
  const std::string phase = text_of(state, "phase");
  Json& rows = state["not_run"];
  if (!rows.is_array()) rows = Json::array();
  Json kept = Json::array();
  for (const Json& row : rows) {
    if (text_of(row, "phase") != phase || text_of(row, "step") != step) kept.push_back(row);
  }
  kept.push_back({{"phase", phase}, {"step", step}, {"reason", reason}});
  rows = std::move(kept);
}

// Evidence of a lane that was started.
Json evidence_of(const Json& result) {
  const std::string status = text_of(result, "status");
  Json evidence = {{"status", status == "ok" ? "done" : status}, {"source", "kernel_entry_auto"}};
  for (const char* field : {"best_speedup", "tuned_file", "error_class"}) {
    if (result.contains(field)) evidence[field] = result[field];
  }
  return evidence;
}

// Runs one lane's engine, or says why it is closed.
Result<void> run_lane(const HookScope& scope, const lane::Gate& gate, const std::string& kind,
                      const char* field) {
  if (!gate.open) return note_not_run(scope.context, kind, gate.reason);
  auto begun = scope.context.state().update(kind + ".running", [&](Json& state) {
    note_entry(state, kind, {{"status", "running"}, {"source", "kernel_entry_auto"}});
  });
  if (!begun) return begun;
  const auto result =
      scope.router.post_synthesized(kind, {{"session_id", scope.context.layout().id}},
                                    [&](const std::string&) { return lane::not_available(kind); });
  if (!result) return std::unexpected(result.error());
  return scope.context.state().update(kind, [&](Json& state) {
    state[field] = *result;
    note_entry(state, kind, evidence_of(*result));
    if (text_of(*result, "status") != "ok") {
      add_not_run(state, kind, text_of(*result, "error_class", "failed"));
    }
    if (kind == "run_collective") {
      state[field]["analysis_key"] = text_of(value_of(state, "last_trace_analyze"), "analysis_key");
    }
  });
}

Result<void> run_fusion(const HookScope& scope) {
  return run_lane(scope, lane::fusion_gate(state_of(scope), scope.context.environment),
                  "run_fusion", "last_fusion");
}

Result<void> run_collective(const HookScope& scope) {
  const auto candidates = read_json(scope.context.layout().candidates());
  const auto gate = lane::collective_gate(state_of(scope), candidates ? *candidates : Json(),
                                          scope.context.environment);
  const lane::Gate closed = lane::Gate::closed(gate ? "" : gate.error().error_class);
  return run_lane(scope, gate ? *gate : closed, "run_collective", "last_collective");
}

// One batch after the other, each followed by the integration of what it proposes, for as long as
// something is selected and there is time.
Result<void> run_batches(const HookScope& scope) {
  const task::Context& context = scope.context;
  const bool enabled = context.state().get("auto_kernel_opt_enabled") != Json(false);
  if (!enabled) return note_not_run(context, "kernel_opt_batch", "switched_off");
  if (!optimize::kernel_opt_work_remains(context, enabled)) {
    return note_not_run(context, "kernel_opt_batch", "nothing_selected");
  }
  while (optimize::kernel_opt_work_remains(context, enabled) && !context.stopped()) {
    const std::string candidates =
        text_of(context.state().get("last_trace_analyze"), "candidates_path");
    if (candidates.empty()) {
      return note_not_run(context, "kernel_opt_batch", "no_candidates_path");
    }
    const Json params = {{"candidates_path", candidates}, {"session_id", context.layout().id}};
    const std::string before = progress_fingerprint(state_of(scope));
    const auto result =
        scope.router.post_synthesized("run_optimization", params, [&](const std::string&) {
          Json answer = optimize::run_optimization(
              params, context, [&](const Json& sub_result) { record(scope, sub_result); });
          if (!flag_of(answer, "batch_mode")) record(scope, answer);
          return answer;
        });
    if (!result) return std::unexpected(result.error());
    auto noted = context.state().update("kernel_opt_batch", [&](Json& state) {
      const Json& before_it = value_of(value_of(state, "phase_entry"), "batch");
      const auto batches = static_cast<int64_t>(number_of(before_it, "batches")) + 1;
      note_entry(state, "kernel_opt_batch",
                 {{"status", "done"}, {"source", "kernel_entry_auto"}, {"batches", batches}});
    });
    if (!noted) return noted;
    if (auto done = integrate_ready(scope, SIZE_MAX); !done) return done;
    // Without a trace in the ledger the same batch would come again for ever.
    const std::string status = text_of(*result, "status");
    if (status == "skipped" || text_of(*result, "error_class") == "not_available" ||
        progress_fingerprint(state_of(scope)) == before) {
      return note_not_run(context, "kernel_opt_batch",
                          text_of(*result, "reason", text_of(*result, "error_class", status)));
    }
  }
  return {};
}

}  // namespace

void record(const HookScope& scope, const Json& result) {
  // A disk that refuses is noticed by the next write of the phase.
  (void)scope.context.state().update("record_kernel_opt", [&](Json& state) {
    optimize::record_kernel_opt(state, result, scope.context.environment);
  });
}

Result<void> note_not_run(const task::Context& context, const std::string& step,
                          const std::string& reason) {
  return context.state().update("not_run", [&](Json& state) {
    add_not_run(state, step, reason);
    note_entry(state, step, {{"status", "skipped"}, {"reason", reason}});
  });
}

Result<void> reprofile(const HookScope& scope) {
  const task::Context& context = scope.context;
  const Json state = state_of(scope);
  const auto hash = workload::tree_hash(context.workload.tree(), context.workload.files());
  if (!hash) return note_not_run(context, "reprofile", hash.error().error_class);
  const std::string fingerprint = configuration_fingerprint(state, *hash);
  const std::string key =
      fmt::format("kernel_entry_g{}_{}", value_of(state, "optimization_stack").size(),
                  fingerprint.substr(0, 12));
  const double now = integrate::from_millionths(integrate::ledger_final(state));
  const Json& last = value_of(state, "last_reprofile");
  const double then = number_of(last, "tput");
  const bool analyzed = value_of(state, "last_trace_analyze").is_object();
  const bool same = analyzed && then > 0 && std::abs(now - then) / then < kSameThroughput &&
                    text_of(last, "fingerprint") == fingerprint;
  if (same) return note_not_run(context, "reprofile", "unchanged");
  // The task of that key has run: what drifted since is the machine.
  if (analyzed && text_of(last, "task") == key) {
    return note_not_run(context, "reprofile", "task_is_done");
  }

  context.show({.phase = "KERNEL_AGENT", .step = "reprofile"});
  std::string trace = text_of(value_of(state, "reprofile_tasks"), key);
  std::error_code error;
  const bool known = !trace.empty() && std::filesystem::exists(trace, error);
  if (!known) trace = text_of(state, "last_profile_trace");
  const bool fresh = !known && (analyzed || trace.empty());
  if (fresh) {
    auto profiled = trace::profile(context, key);
    if (!profiled) {
      return note_not_run(context, "reprofile", profiled.error().error_class);
    }
    trace = *profiled;
  }
  const Json payload = {{"trace_input", trace}, {"framework", context.workload.framework()}};
  const Json result = trace::trace_analyze(payload, context);
  if (text_of(result, "status") != "ok") {
    return note_not_run(context, "reprofile", text_of(result, "error_class", "failed"));
  }
  return context.state().update("reprofile", [&](Json& changed) {
    trace::record_trace_analyze(changed, payload, result);
    changed["last_reprofile"] = {
        {"task", key}, {"tput", now}, {"fingerprint", fingerprint}, {"ts", utc_now()}};
    Json& tasks = changed["reprofile_tasks"];
    if (!tasks.is_object()) tasks = Json::object();
    tasks[key] = trace;
  });
}

Result<void> integrate_ready(const HookScope& scope, size_t limit) {
  const task::Context& context = scope.context;
  if (auto settled = settle_geak(scope); !settled) return settled;
  // Faults of the dispatch and of the candidate are counted apart, and each is retried once.
  constexpr int kMostTries = 3;
  std::map<std::string, int> tries;
  for (size_t done = 0; done < limit && !context.stopped(); ++done) {
    const std::vector<std::string> ready = integrate::ready_integrations(state_of(scope));
    if (ready.empty() || ++tries[ready.front()] > kMostTries) return {};
    context.show(
        {.phase = text_of(state_of(scope), "phase"), .step = "integrate " + ready.front()});
    const Json params = {{"integration_id", ready.front()}};
    const auto result =
        scope.router.post_synthesized("integrate", params, [&](const std::string& request_id) {
          Json payload = params;
          payload["request_id"] = request_id;
          return integrate::integrate_queued(payload, context);
        });
    if (!result) return std::unexpected(result.error());
    if (auto settled = settle_geak(scope); !settled) return settled;
    const std::vector<std::string> after = integrate::ready_integrations(state_of(scope));
    const bool progress = std::ranges::find(after, ready.front()) == after.end() ||
                          text_of(*result, "status") == "failed";
    if (!progress) return {};
  }
  return {};
}

// The claim of a whole-program search is answered by what became of its candidate, which the queue
// remembers whatever happened in between.
Result<void> settle_geak(const HookScope& scope) {
  const Json state = state_of(scope);
  const Json& pending = value_of(state, "geak_pending");
  if (text_of(pending, "status") != "awaiting_rebench") return {};
  const Json& record =
      value_of(value_of(state, "pending_kernel_integrations"), text_of(pending, "integration_id"));
  const std::string status = text_of(record, "status");
  if (status == "pending" || status == "dispatch_failed") return {};
  return scope.context.state().update("geak_pending", [&](Json& changed) {
    changed["geak_pending"]["status"] = "judged";
    changed["geak_pending"]["outcome"] = status.empty() ? "lost" : status;
  });
}

namespace {

Result<void> geak_branch(const HookScope& scope) {
  const task::Context& context = scope.context;
  const Json params = {{"session_id", context.layout().id}};
  const Json last = context.state().get("last_geak");
  // A resumed phase does not search again for what it has found.
  if (!last.is_object() || text_of(last, "status") == "interrupted") {
    context.show({.phase = "KERNEL_AGENT", .step = "whole-program search"});
    const auto result = scope.router.post_synthesized("geak_e2e", params, [&](const std::string&) {
      Json answer = optimize::run_geak_phase(params, context);
      (void)context.state().update("record_geak",
                                   [&](Json& state) { optimize::record_geak(state, answer); });
      return answer;
    });
    if (!result) return std::unexpected(result.error());
    if (text_of(*result, "status") != "ok") {
      auto noted =
          note_not_run(context, "geak_e2e", text_of(*result, "reason", text_of(*result, "status")));
      if (!noted) return noted;
    }
  }
  if (auto done = integrate_ready(scope, SIZE_MAX); !done) return done;
  return hint(scope, "skip_to_sweep");
}

Result<void> finish_kernel_entry(const HookScope& scope) {
  if (auto done = reprofile(scope); !done) return done;
  if (auto done = run_fusion(scope); !done) return done;
  if (auto done = run_collective(scope); !done) return done;
  return run_batches(scope);
}

}  // namespace

Result<void> enter_kernel(const HookScope& scope) {
  const task::Context& context = scope.context;
  if (context.state().get("kernel_enabled") == Json(false)) {
    return note_not_run(context, "kernel", "switched_off");
  }
  if (lane::collective_only(context.environment)) {
    if (auto done = reprofile(scope); !done) return done;
    if (auto done = run_collective(scope); !done) return done;
    return hint(scope, "skip_to_sweep");
  }
  if (!scope.options.kernel.empty()) {
    // The named kernel is asked for by the policy, through the same gate as any request.
    if (auto done = note_not_run(context, "kernel_opt_batch", "one_kernel_named"); !done) {
      return done;
    }
    return reprofile(scope);
  }
  // The switch of the automatic batch is of the batch alone.
  if (!lane::forge_selected(context.environment)) return geak_branch(scope);
  const lane::Gate gemm = lane::gemm_gate(state_of(scope), context.environment);
  if (gemm.open) {
    if (auto done = reprofile(scope); !done) return done;
  }
  if (auto done = run_lane(scope, gemm, "run_gemm_tuning", "last_gemm_tuning"); !done) return done;
  return finish_kernel_entry(scope);
}

Result<void> enter_sweep(const HookScope& scope) {
  constexpr size_t kMostWaiting = 10;
  const task::Context& context = scope.context;
  if (auto turn = integrate::give_waiting_their_turn(context); !turn) return turn;
  if (auto done = integrate_ready(scope, kMostWaiting); !done) return done;
  if (context.stopped()) return {};
  const auto combined = scope.router.post_synthesized(
      "integrate", {{"integration_id", "small-positives"}},
      [&](const std::string&) { return integrate::integrate_small_positives(context); });
  if (!combined) return std::unexpected(combined.error());
  if (text_of(*combined, "status") != "skipped") return {};
  return note_not_run(context, "small_positives",
                      text_of(*combined, "reason", text_of(*combined, "decision_reason")));
}

}  // namespace hyperloom::coordinator
