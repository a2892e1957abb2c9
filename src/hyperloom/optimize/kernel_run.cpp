#include "hyperloom/optimize/kernel_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

#include "hyperloom/optimize/attempt_record.h"
#include "hyperloom/optimize/bundle.h"
#include "hyperloom/optimize/guards.h"
#include "hyperloom/optimize/ledger.h"
#include "hyperloom/optimize/run_files.h"
#include "hyperloom/optimize/task_key.h"
#include "hyperloom/optimize/verification.h"
#include "loom/base/file.h"
#include "loom/base/hash.h"

namespace hyperloom::optimize {
namespace {

constexpr double kGraceSeconds = 180;  // of a wrapper and of a ladder over their budgets
constexpr double kLeastSeconds = 10;   // of the session, for which no backend is started
constexpr size_t kOutputTail = 4000;
constexpr unsigned kVerifyPairs = 7;
constexpr size_t kVerifySeeds = 3;

// Why a run ends without a word about the kernel.
bool is_machinery(const std::string& error_type) {
  static constexpr std::array kTypes = {
      "tree_drift",      "backend_config_changed", "baseline_failed", "missing_compiler",
      "unwritable_file", "unreadable_file",        "cancelled",       "lane_timeout",
      "database",        "backend_exception",      "ladder_timeout",  "state_unreadable"};
  return std::ranges::find(kTypes, error_type) != kTypes.end();
}

std::string file_hash(const fs::path& path) {
  const auto text = loom::read_file(path.string());
  return text ? loom::sha256_hex(*text) : "";
}

class KernelRun {
 public:
  KernelRun(const task::Context& context, const KernelTask& task, const Engines& engines,
            QuietMachine* quiet)
      : context_(context),
        task_(task),
        engines_(engines),
        quiet_(quiet),
        row_(task.candidate),
        kernel_id_(text_of(row_, "kernel_id")),
        kernel_(symbol_of(row_)),
        backend_name_(selected_backend(context.environment)),
        ordinal_(ordinal_of(context, row_)),
        clock_(task.kernel_budget_minutes * 60 + kGraceSeconds, wrapper_deadline()),
        files_(context.layout(), id("ko"), kernel_id_) {}

  Json run() {
    Json result = head();
    if (auto ready = prepare(); !ready) return finish(fail_with(result, ready.error()));
    if (task_.dry_run) {
      if (auto made = dry_run(); !made) return finish(fail_with(result, made.error()));
    } else {
      Backend* backend = find_backend(engines_.backends, backend_name_);
      if (backend == nullptr) {
        return finish(fail_with(
            result, {"not_available", "the backend '" + backend_name_ + "' is not installed", ""}));
      }
      if (auto one = check_devices(row_, context_.environment); !one) {
        return finish(fail_with(result, one.error()));
      }
      if (auto ran = attempt(*backend); !ran) return finish(fail_with(result, ran.error()));
    }
    return finish(conclude(std::move(result)));
  }

 private:
  static int64_t ordinal_of(const task::Context& context, const Json& row) {
    int64_t attempts = 0;
    context.state().read([&](const Json& state) { attempts = attempts_of(state, row); });
    return attempts;
  }
  Deadline wrapper_deadline() const {
    return Deadline::in_seconds(task_.budget_minutes * 60 + kGraceSeconds)
        .earlier(context_.deadline);
  }
  std::string id(const std::string& prefix) const {
    return derived_id(prefix, context_.layout().id, task_key(row_), ordinal_);
  }

  Json head() const {
    Json result = {{"tool", kTool},
                   {"session_id", context_.layout().id},
                   {"run_id", files_.run_id()},
                   {"kernel_id", kernel_id_},
                   {"kernel_name", kernel_},
                   {"source_file", source_of(row_)},
                   {"gpu_pct", effective_share_of_row()},
                   {"e2e_share", value_of(row_, "e2e_share")},
                   {"num_gpus", devices_of(row_, context_.environment)},
                   {"dry_run", task_.dry_run},
                   {"selected_backends", {backend_name_}},
                   {"backend_selection", task_.backend_selection},
                   {"warnings", task_.warnings},
                   {"attempts", Json::array()},
                   {"rag_hits", Json::array()},
                   {"xs_memory_hits", Json::array()},
                   {"best_artifact_path", ""},
                   {"cli_log_path", files_.log_path().string()},
                   {"status_path", files_.status_path().string()}};
    const Json& group = value_of(row_, "task_group");
    static constexpr std::array kGroupFields = {"task_group_id", "task_group_key", "identity_route",
                                                "operator_identity", "legacy_task_group_keys"};
    for (const char* field : kGroupFields) {
      if (const Json& value = value_of(group, field); !value.is_null()) result[field] = value;
    }
    if (group.is_object()) {
      result["task_group_kernel_ids"] = value_of(group, "kernel_ids");
      result["task_group_primary_kernel_id"] = value_of(group, "primary_kernel_id");
      Json cases = Json::array();
      if (const Json& listed = value_of(group, "shape_cases"); listed.is_array()) {
        for (const Json& item : listed) cases.push_back(text_of(item, "case_id"));
      }
      result["task_group_shape_case_count"] = cases.size();
      result["task_group_shape_case_ids"] = std::move(cases);
    }
    if (auto vendor = text_of(row_, "vendor_playbook_group_id"); !vendor.empty()) {
      result["vendor_playbook_id"] = vendor;
    }
    return result;
  }
  double effective_share_of_row() const { return number_of(row_, "gpu_pct"); }

  static Json fail_with(Json result, const Error& error) {
    result["status"] = error.error_class == "ladder_timeout" ? "timeout" : "failed";
    result["error_class"] = error.error_class;
    result["error"] = error.message;
    if (!error.hint.empty()) result["hint"] = error.hint;
    return result;
  }

  Result<void> prepare() {
    if (auto saved = files_.step("load_candidate"); !saved) return saved;
    const std::string group = text_of(value_of(row_, "task_group"), "task_group_id");
    const std::string name = session::safe_name(group.empty() ? kernel_id_ : group);
    return save_json("kernel_opt.candidate",
                     context_.layout().run() / "inputs" / ("candidate_" + name + ".json"), row_);
  }

  fs::path source_path() const {
    return context_.workload.tree() / relative_source(context_.workload, row_);
  }

  // The hash that the analysis took, else the one that was there in the beginning.
  Result<std::string> tree_hash() const {
    return workload::tree_hash(context_.workload.tree(), context_.workload.files());
  }

  Result<void> attempt(Backend& backend) {
    if (auto saved = files_.step("run_backends"); !saved) return saved;
    // Nothing was waited for yet, so that the ladder's clock is the wall's.
    const double used =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
    if (used >= task_.kernel_budget_minutes * 60) {
      return fail("ladder_timeout", "no more than 180 seconds are left for a backend");
    }
    if (clock_.seconds_left() <= kLeastSeconds) {
      return fail("ladder_timeout", "the session ends before a backend could find anything");
    }
    const auto begin = std::chrono::steady_clock::now();
    const auto hash = tree_hash();
    if (!hash) return std::unexpected(hash.error());
    const std::string analysed =
        text_of(context_.state().get("last_trace_analyze"), "tree_hash", *hash);
    record_.attempt_id = id(backend.name());
    record_.backend = backend.name();
    record_.workspace =
        context_.layout().kernel_workspace(kernel_id_) / session::safe_name(record_.attempt_id);
    auto tree = TreeCopy::make(context_.workload.tree(), context_.workload.files(),
                               record_.workspace / "tree");
    if (!tree) return std::unexpected(tree.error());
    auto space = engines_.open_space(context_, kernel_);
    if (!space) return std::unexpected(space.error());
    const fs::path config = record_.workspace / "config.json";
    if (auto saved = save_config(config, backend); !saved) return saved;
    const std::string config_hash = file_hash(config);
    Judge judge(context_, clock_, quiet_, kernel_);
    std::string output;
    Attempt made{.context = context_,
                 .attempt_id = record_.attempt_id,
                 .kernel_id = kernel_id_,
                 .kernel = kernel_,
                 .candidate = row_,
                 .space = **space,
                 .judge = judge,
                 .clock = clock_,
                 .tree = *tree,
                 .workspace = record_.workspace,
                 .config = config,
                 .seed = seed(),
                 .say = [&](const std::string& line) { output += line + "\n"; }};
    if (auto saved = save_prompt(made); !saved) return saved;
    files_.say("attempt " + record_.attempt_id + " begins");
    record_.outcome = run_backend(backend, made);
    const auto now = tree_hash();
    if (now && (*now != *hash || *hash != analysed)) {
      spoil("tree_drift", "the sources are not those that were analysed");
    } else if (file_hash(config) != config_hash) {
      spoil("backend_config_changed", "the backend changed its configuration");
    }
    record_.elapsed_s =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    if (context_.stopped()) return fail("cancelled", "the session was stopped");
    if (auto saved = save_attempt(output); !saved) return saved;
    if (auto saved = files_.step("verify_and_propose"); !saved) return saved;
    const auto verified = verify(judge, *tree);
    std::error_code ignored;
    fs::remove_all(tree->root(), ignored);
    return verified;
  }

  uint64_t seed() const {
    return loom::hash_combine(context_.seed, loom::hash_bytes(record_.attempt_id));
  }

  Result<void> save_config(const fs::path& path, const Backend& backend) const {
    Json config = backend.configuration(context_);
    config["kernel"] = kernel_;
    config["kernel_id"] = kernel_id_;
    config["seed"] = context_.seed;
    std::error_code ignored;
    fs::remove(path, ignored);
    if (auto saved = save_json("kernel_opt.config", path, config); !saved) return saved;
    std::error_code error;
    fs::permissions(path, fs::perms::owner_read | fs::perms::group_read | fs::perms::others_read,
                    error);
    if (error) return fail("unwritable_file", path.string() + ": " + error.message());
    return {};
  }

  Result<void> save_prompt(const Attempt& made) {
    record_.prompt_path = context_.layout().prompt(record_.attempt_id);
    const auto source = loom::read_file(source_path().string());
    return save_text(
        "kernel_opt.prompt", record_.prompt_path,
        prompt_text(made, source ? *source : "", context_.state().get("device_peaks")));
  }

  static Outcome run_backend(Backend& backend, Attempt& made) {
    try {
      return backend.optimize(made);
    } catch (const std::exception& error) {
      Outcome outcome;
      outcome.returncode = 1;
      outcome.error_type = "backend_exception";
      outcome.message = error.what();
      return outcome;
    }
  }

  // Whatever it found does not count.
  void spoil(const std::string& error_type, const std::string& message) {
    record_.outcome.returncode = 1;
    record_.outcome.error_type = error_type;
    record_.outcome.message = message;
    record_.outcome.best.reset();
    record_.outcome.measured = false;
  }

  Result<void> save_attempt(const std::string& output) {
    Outcome& outcome = record_.outcome;
    record_.status = attempt_status(outcome.returncode, outcome.best.has_value(), output);
    record_.error_type = outcome.error_type;
    record_.message = outcome.message;
    record_.output_path = context_.layout().attempt_output(record_.attempt_id);
    record_.output_tail = output.substr(output.size() - std::min(output.size(), kOutputTail));
    if (outcome.best) {
      auto bundle = write_bundle(record_.workspace, context_.workload.tree(), outcome.best->change,
                                 record_.backend,
                                 {{"attempt_id", record_.attempt_id},
                                  {"kernel", kernel_},
                                  {"speedup", outcome.best->speedup},
                                  {"content_hash", outcome.best->content_hash}});
      if (!bundle) return std::unexpected(bundle.error());
      record_.bundle = std::move(*bundle);
    }
    if (auto saved = save_text("kernel_opt.output", record_.output_path, output); !saved) {
      return saved;
    }
    files_.say(
        fmt::format("attempt {} {}: {}", record_.attempt_id, record_.status, record_.message));
    return append_attempt(context_.layout(), record_.to_row());
  }

  // Builds what was written down, not what the backend says, and judges it with seeds that the
  // search did not use.
  Result<void> verify(Judge& judge, TreeCopy& tree) {
    const Outcome& outcome = record_.outcome;
    verification_.any_usable_attempt = record_.usable();
    verification_.best_attempt_id = record_.attempt_id;
    verification_.best_backend = record_.backend;
    verification_.benchmark_available = true;
    if (!record_.usable()) return {};
    verification_.micro_speedup_source =
        record_.backend == "forge" ? "forge_mean_case_result" : "structured_timing_result";
    verification_.compile_passed = true;
    if (!outcome.best) return {};
    verification_.micro_speedup = outcome.best->speedup;
    verification_.extra_envs = outcome.best->change.envs;
    verification_.correctness_passed = true;
    verification_.correctness_source = "forge_rewrite_reference";
    Change change;
    if (!record_.bundle.is_null()) {
      auto read = read_bundle(record_.bundle);
      if (!read) {
        verification_.artifact_error = read.error().message;
        return {};
      }
      change = std::move(*read);
      verification_.best_artifact_bundle = record_.bundle;
      verification_.best_artifact_path = best_artifact();
    }
    verification_.artifact_valid = true;
    verification_.artifact_source = "source_file";
    if (auto set = tree.set(change); !set) return set;
    Rigour rigour;
    for (size_t i = 0; i < kVerifySeeds; ++i) rigour.seeds.push_back(seed() + 1000 + i);
    rigour.pairs = kVerifyPairs;
    rigour.key = "verify " + record_.attempt_id;
    const auto judged = judge.evaluate({tree.root(), outcome.best->change.envs}, rigour);
    if (!judged) {
      // The search's own judgement stands where the time is over.
      if (judged.error().error_class == "ladder_timeout") return {};
      return std::unexpected(judged.error());
    }
    verification_.micro_speedup = judged->speedup;
    verification_.correctness_passed = judged->correct;
    if (!judged->usable()) verification_.artifact_error = judged->message;
    if (judged->status == "build_failed") verification_.compile_passed = false;
    return {};
  }

  std::string best_artifact() const {
    const fs::path snapshot = text_of(record_.bundle, "snapshot_dir");
    const fs::path own = snapshot / relative_source(context_.workload, row_);
    std::error_code error;
    if (fs::exists(own, error)) return own.string();
    const auto paths = strings_of(value_of(record_.bundle, "write_paths"));
    return paths.empty() ? "" : (snapshot / paths.front()).string();
  }

  Result<void> dry_run() {
    record_.attempt_id = id(backend_name_);
    record_.backend = backend_name_;
    record_.status = "completed";
    const std::string suffix = source_path().extension().string();
    const fs::path placeholder =
        context_.layout().attempt_output(record_.attempt_id).parent_path() /
        (record_.attempt_id + "_optimized" + suffix);
    const auto source = loom::read_file(source_path().string());
    record_.prompt_path = context_.layout().prompt(record_.attempt_id);
    record_.output_path = placeholder;
    const std::string text = source ? *source : "";
    if (auto saved = save_text("kernel_opt.prompt", record_.prompt_path,
                               "# " + kernel_ + "\n\nDry run.\n\n" + text);
        !saved) {
      return saved;
    }
    if (auto saved = save_text("kernel_opt.placeholder", placeholder, text); !saved) return saved;
    verification_.dry_run = true;
    verification_.any_usable_attempt = true;
    verification_.micro_speedup = number_of(task_.overrides, "micro_speedup", 1.05);
    verification_.micro_speedup_source =
        task_.overrides.contains("micro_speedup") ? "cli_override" : "dry_run_placeholder";
    const auto flag = [&](const char* field) -> std::optional<bool> {
      const Json& value = value_of(task_.overrides, field);
      return value.is_boolean() ? std::optional(value.get<bool>()) : std::nullopt;
    };
    verification_.correctness_passed = flag("correctness_passed");
    if (verification_.correctness_passed) verification_.correctness_source = "cli_override";
    verification_.accuracy_passed = flag("accuracy_passed");
    if (task_.overrides.contains("e2e_gain_pct")) {
      verification_.e2e_gain_pct = number_of(task_.overrides, "e2e_gain_pct");
    }
    verification_.best_attempt_id = record_.attempt_id;
    verification_.best_backend = record_.backend;
    verification_.best_artifact_path = placeholder.string();
    verification_.artifact_valid = true;
    verification_.artifact_source = "source_file";
    return {};
  }

  Json conclude(Json result) {
    if (!record_.attempt_id.empty()) result["attempts"].push_back(record_.to_row());
    result["verification"] = verification_.to_json();
    result["best_artifact_path"] = verification_.best_artifact_path;
    if (!record_.usable() && is_machinery(record_.error_type)) {
      return fail_with(std::move(result), {record_.error_type, record_.message, ""});
    }
    result["status"] = "ok";
    result["proposal"] = propose(verification_).to_json();
    return result;
  }

  // One record for each run, and one under the kernel's name that is the newest.
  Result<void> save_both(const fs::path& newest, Json document) {
    const fs::path of_run =
        newest.parent_path() / "runs" / (session::safe_name(files_.run_id()) + ".json");
    document["run_id"] = files_.run_id();
    if (auto saved = save_json("kernel_opt.record", of_run, document); !saved) return saved;
    document["record_path"] = of_run.string();
    return save_json("kernel_opt.pointer", newest, document);
  }

  Json finish(Json result) {
    const session::Layout& layout = context_.layout();
    result["artifact_paths"] = {{"verification", layout.verification(kernel_id_).string()},
                                {"result", layout.result(kernel_id_).string()},
                                {"attempts", layout.attempts().string()},
                                {"prompt", record_.prompt_path.string()},
                                {"optimized", record_.output_path.string()}};
    Result<void> saved;
    if (const Json& verification = value_of(result, "verification"); verification.is_object()) {
      saved = save_both(layout.verification(kernel_id_), verification);
    }
    if (saved) saved = save_both(layout.result(kernel_id_), result);
    if (!saved) result = fail_with(std::move(result), saved.error());
    const std::string status = text_of(result, "status");
    files_.say("ends: " + status + " " + text_of(value_of(result, "proposal"), "decision"));
    const auto ended = files_.end(status == "ok" ? "succeeded" : "failed", text_of(result, "error"),
                                  result["artifact_paths"]);
    if (!ended && status == "ok") result = fail_with(std::move(result), ended.error());
    if (text_of(result, "status") != "ok") result.erase("proposal");
    return result;
  }

  const task::Context& context_;
  const KernelTask& task_;
  const Engines& engines_;
  QuietMachine* quiet_;
  const Json& row_;
  std::string kernel_id_;
  std::string kernel_;
  std::string backend_name_;
  int64_t ordinal_;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  LadderClock clock_;
  RunFiles files_;
  AttemptRecord record_;
  Verification verification_;
};

}  // namespace

fs::path relative_source(const workload::Workload& workload, const Json& candidate) {
  const fs::path source = source_of(candidate);
  if (source.is_relative()) return source;
  std::error_code error;
  const fs::path tree = fs::weakly_canonical(workload.tree(), error);
  const fs::path inside = fs::weakly_canonical(source, error).lexically_relative(tree);
  return !inside.empty() && *inside.begin() != ".." ? inside : source;
}

std::string symbol_of(const Json& candidate) {
  std::string symbol = text_of(candidate, "source_function");
  if (symbol.empty()) symbol = text_of(candidate, "name");
  return symbol.starts_with("@") ? symbol.substr(1) : symbol;
}

Json optimize_kernel(const task::Context& context, const KernelTask& task, const Engines& engines,
                     QuietMachine* quiet) {
  return KernelRun(context, task, engines, quiet).run();
}

}  // namespace hyperloom::optimize
