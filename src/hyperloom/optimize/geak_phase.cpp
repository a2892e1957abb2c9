#include "hyperloom/optimize/geak_phase.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "hyperloom/core/time.h"
#include "hyperloom/optimize/bundle.h"
#include "hyperloom/optimize/guards.h"
#include "hyperloom/optimize/ledger.h"
#include "hyperloom/optimize/run_files.h"
#include "hyperloom/optimize/verification.h"
#include "loom/base/hash.h"

namespace hyperloom::optimize {
namespace {

// The id under which the whole program is a candidate.
constexpr const char* kProgramId = "geak";
constexpr int kHandoffSchema = 2;
// A baseline that differs by more from the one that was handed over was measured under other
// conditions: what is compared with it says nothing.
constexpr double kReproduction = 0.5;

class GeakPhase {
 public:
  GeakPhase(const Json& payload, const task::Context& context, const Engines& engines)
      : context_(context),
        engines_(engines),
        cycle_(value_of(payload, "cycle").is_number_integer() ? payload["cycle"].get<int64_t>()
                                                              : 1),
        folder_(context.layout().session / "geak"),
        eval_dir_(folder_ / fmt::format("e2e_cycle{}", cycle_)),
        seconds_(
            std::min(context.environment.number("GEAK_E2E_TIMEOUT_S"),
                     context.deadline.seconds_left() - seconds_of("GEAK_BUDGET_MARGIN_S", 0.05))),
        clock_(std::max(0.0, seconds_), context.deadline) {
    outcome_ = {{"kind", "geak_e2e"},
                {"cycle", cycle_},
                {"speedup", 1.0},
                {"handoff_path", (folder_ / "handoff.json").string()},
                {"result_path", ""}};
  }

  Json run() {
    Backend* runner = find_backend(engines_.backends, "geak");
    if (runner == nullptr) return end("runner_not_found", "not_available", "geak is not installed");
    if (auto one = check_devices(Json::object(), context_.environment); !one) {
      outcome_["reason"] = one.error().error_class;
      return end("skipped", one.error().error_class, one.error().message);
    }
    if (seconds_ < seconds_of("GEAK_MIN_RUN_S", 0.10)) {
      outcome_["reason"] = "insufficient_budget";
      return end("skipped", "", fmt::format("{:.0f} seconds are left for the search", seconds_));
    }
    if (auto saved = save_json("geak.handoff", folder_ / "handoff.json", handoff()); !saved) {
      return end("runner_crashed", saved.error().error_class, saved.error().message);
    }
    if (auto ran = search(*runner); !ran) {
      const std::string& error_class = ran.error().error_class;
      return end(error_class == "ladder_timeout"    ? "timeout"
                 : error_class == "baseline_failed" ? "baseline_reproduction_failed"
                 : error_class == "no_result_json"  ? "no_result_json"
                 : error_class == "cancelled"       ? "failed"
                                                    : "runner_crashed",
                 error_class, ran.error().message);
    }
    return std::move(outcome_);
  }

 private:
  Json end(const std::string& status, const std::string& error_class, const std::string& message) {
    outcome_["status"] = status;
    if (!error_class.empty()) outcome_["error_class"] = error_class;
    outcome_["error"] = message;
    return std::move(outcome_);
  }

  // What the variable says; unset, its default, or `part` of the session's budget where that is
  // less: a program that runs here needs no minutes to start.
  double seconds_of(std::string_view name, double part) const {
    const double seconds = context_.environment.number(name);
    const double budget =
        number_of(value_of(context_.session.manifest(), "options"), "budget_seconds");
    if (context_.environment.has(name) || budget <= 0) return seconds;
    return std::min(seconds, part * budget);
  }

  Json handoff() const {
    Json state;
    context_.state().read([&](const Json& document) { state = document; });
    const Json& best = value_of(state, "current_best");
    return {{"schema_version", kHandoffSchema},
            {"model", context_.workload.name()},
            {"framework", context_.workload.framework()},
            {"gpu", context_.workload.device()},
            {"tp", 1},
            {"workload", context_.workload.describe()},
            {"accepted_flags", value_of(best, "extra_server_args")},
            {"accepted_env", value_of(best, "extra_envs")},
            {"raw_baseline_throughput", value_of(state, "baseline_tput")},
            {"orchestrator_best", value_of(best, "tput")},
            {"exp_root", folder_.string()},
            {"eval_dir", eval_dir_.string()},
            {"gpu_ids", {context_.workload.device()}},
            {"e2e_metric", "output"},
            {"bench_protocol", "interleaved pairs of the program as it is and the candidate"}};
  }

  std::string attempt_id() const {
    return derived_id("geak", context_.layout().id, "whole-program", cycle_);
  }
  uint64_t seed() const {
    return loom::hash_combine(context_.seed, loom::hash_bytes(attempt_id()));
  }

  Result<void> reproduce_baseline(Judge& judge) const {
    const auto nanoseconds = judge.baseline(attempt_id());
    if (!nanoseconds) return std::unexpected(nanoseconds.error());
    const double expected = number_of(context_.state().get("current_best"), "tput", [&] {
      const Json baseline = context_.state().get("baseline_tput");
      return baseline.is_number() ? baseline.get<double>() : 0.0;
    }());
    const double measured = 1e9 / *nanoseconds;
    if (expected > 0 && std::abs(measured / expected - 1) > kReproduction) {
      return fail("baseline_failed",
                  fmt::format("{:.6g} issues a second were handed over, {:.6g} are measured",
                              expected, measured));
    }
    return {};
  }

  Result<void> search(Backend& runner) {
    const auto hash = workload::tree_hash(context_.workload.tree(), context_.workload.files());
    if (!hash) return std::unexpected(hash.error());
    auto space = engines_.open_space(context_, "");
    if (!space) return std::unexpected(space.error());
    auto tree =
        TreeCopy::make(context_.workload.tree(), context_.workload.files(), eval_dir_ / "tree");
    if (!tree) return std::unexpected(tree.error());
    QuietMachine machine;
    Judge judge(context_, clock_,
                context_.workload.device().starts_with("cpu") ? &machine : nullptr, "");
    if (auto same = reproduce_baseline(judge); !same) return same;
    const fs::path config = eval_dir_ / "config.json";
    if (auto saved = save_json("geak.config", config, runner.configuration(context_)); !saved) {
      return saved;
    }
    std::string output;
    const Json program = {{"kernel_id", kProgramId}, {"name", context_.workload.name()}};
    Attempt attempt{.context = context_,
                    .attempt_id = attempt_id(),
                    .kernel_id = kProgramId,
                    .kernel = "",
                    .candidate = program,
                    .space = **space,
                    .judge = judge,
                    .clock = clock_,
                    .tree = *tree,
                    .workspace = eval_dir_,
                    .config = config,
                    .seed = seed(),
                    .say = [&](const std::string& line) { output += line + "\n"; }};
    Outcome found = run(runner, attempt);
    if (auto saved = save_text("geak.log", eval_dir_ / "runner.log", output); !saved) return saved;
    if (context_.stopped()) return fail("cancelled", "the session was stopped");
    const auto now = workload::tree_hash(context_.workload.tree(), context_.workload.files());
    if (!now || *now != *hash) {
      return fail("tree_drift", "the sources changed while the program was searched");
    }
    // What was verified before the end came is a result like any other.
    if (found.returncode != 0 && found.returncode != 2 && !found.best) {
      return fail(found.error_type.empty() ? "runner_crashed" : found.error_type, found.message);
    }
    if (auto done = conclude(attempt, found); !done) return done;
    std::error_code ignored;
    fs::remove_all(tree->root(), ignored);
    return {};
  }

  static Outcome run(Backend& runner, Attempt& attempt) {
    try {
      return runner.optimize(attempt);
    } catch (const std::exception& error) {
      Outcome outcome;
      outcome.returncode = 1;
      outcome.error_type = "runner_crashed";
      outcome.message = error.what();
      return outcome;
    }
  }

  // How much faster each kernel became: the bound on what is plausible.
  Json kernel_speedups(const Attempt& attempt, const Change& change) const {
    if (auto set = attempt.tree.set(change); !set) return Json::object();
    const auto speedups = attempt.judge.kernel_speedups(
        {attempt.tree.root(), change.envs}, {.seeds = {}, .key = "kernels " + attempt_id()});
    return speedups ? *speedups : Json::object();
  }

  Result<void> conclude(const Attempt& attempt, Outcome& found) {
    Json result = {{"attempt_id", attempt_id()},
                   {"evaluated", found.evaluated},
                   {"exhausted", found.exhausted},
                   {"speedup", found.best ? found.best->speedup : 1.0},
                   {"words", found.best ? found.best->words : "as it is"}};
    if (found.best) {
      const auto bundle =
          write_bundle(eval_dir_, context_.workload.tree(), found.best->change, "geak",
                       {{"attempt_id", attempt_id()}, {"speedup", found.best->speedup}});
      if (!bundle) return std::unexpected(bundle.error());
      outcome_["candidate"] = candidate(attempt, *found.best, *bundle);
      result["candidate"] = outcome_["candidate"];
    }
    const fs::path path = eval_dir_ / "result.json";
    if (auto saved = save_json("geak.result", path, result); !saved) return saved;
    outcome_["status"] = "ok";
    outcome_["speedup"] = result["speedup"];
    outcome_["result_path"] = path.string();
    return {};
  }

  Json candidate(const Attempt& attempt, const Found& best, const Json& bundle) {
    const std::string source = first_file(bundle);
    const std::string artifact =
        source.empty() ? "" : (fs::path(text_of(bundle, "snapshot_dir")) / source).string();
    const std::string target = source.empty() ? "" : (context_.workload.tree() / source).string();
    return {{"integration_id", integration_id("whole-program", target, artifact, bundle)},
            {"task_key", "whole-program"},
            {"task_group_key", ""},
            {"identity_route", "whole_program"},
            {"legacy_task_group_keys", Json::array()},
            {"kernel_id", kProgramId},
            {"kernel_name", context_.workload.name()},
            {"source_file", target},
            {"artifact_path", artifact},
            {"artifact_bundle", bundle},
            {"snapshot_dir", text_of(bundle, "snapshot_dir")},
            {"deploy_patch_path", text_of(bundle, "patch_path")},
            {"deploy_repo_root", text_of(bundle, "repo_root")},
            {"extra_envs", best.change.envs},
            {"micro_speedup", best.speedup},
            {"kernel_speedups", kernel_speedups(attempt, best.change)},
            {"optimization_decision", "KEEP"},
            {"trace_gpu_pct", 100.0},
            {"e2e_share", 1.0},
            {"backend", "geak"},
            {"created_at", utc_now()},
            {"status", "pending"},
            {"correctness_source", "forge_rewrite_reference"},
            {"artifact_kind", bundle.is_object() ? "patch_snapshot" : "configuration"},
            {"integration_validation_status", "deferred"},
            {"framework_applyback", false},
            {"words", best.words}};
  }
  static std::string first_file(const Json& bundle) {
    const Json& paths = value_of(bundle, "write_paths");
    return paths.is_array() && !paths.empty() ? paths[0].get<std::string>() : "";
  }

  const task::Context& context_;
  const Engines& engines_;
  int64_t cycle_;
  fs::path folder_;
  fs::path eval_dir_;
  double seconds_;
  LadderClock clock_;
  Json outcome_;
};

}  // namespace

Json run_geak_phase(const Json& payload, const task::Context& context, const Engines& engines) {
  return GeakPhase(payload, context, engines).run();
}

Json run_geak_phase(const Json& payload, const task::Context& context) {
  return run_geak_phase(payload, context, installed_engines());
}

void record_geak(Json& state, const Json& outcome) {
  Json last = outcome;
  last.erase("candidate");
  last["ts"] = utc_now();
  state["last_geak"] = std::move(last);
  const Json& candidate = value_of(outcome, "candidate");
  if (!candidate.is_object()) return;
  const std::string id = text_of(candidate, "integration_id");
  state["geak_pending"] = {{"integration_id", id},
                           {"status", "awaiting_rebench"},
                           {"speedup", value_of(outcome, "speedup")},
                           {"result_path", text_of(outcome, "result_path")}};
  Json& pending = state["pending_kernel_integrations"];
  if (!pending.is_object()) pending = Json::object();
  if (!pending.contains(id)) pending[id] = candidate;
}

}  // namespace hyperloom::optimize
