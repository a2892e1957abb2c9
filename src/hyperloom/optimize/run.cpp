#include "hyperloom/optimize/run.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <thread>
#include <utility>

#include "hyperloom/optimize/guards.h"
#include "hyperloom/optimize/run_files.h"
#include "hyperloom/optimize/select.h"
#include "hyperloom/optimize/task_key.h"

namespace hyperloom::optimize {
namespace {

constexpr int kArtifactTries = 5;
constexpr std::chrono::milliseconds kArtifactWait{500};
constexpr int64_t kMostParallel = 64;

Json failure(const std::string& error_class, const std::string& message) {
  return {{"status", "failed"}, {"error_class", error_class}, {"error", message}};
}

struct Field {
  const char* name;
  bool (*fits)(const Json&);
  const char* type;
};
bool is_text(const Json& value) { return value.is_string(); }
bool is_number(const Json& value) { return value.is_number(); }
bool is_positive(const Json& value) { return value.is_number() && value.get<double>() > 0; }
bool is_count(const Json& value) { return value.is_number_integer() && value.get<int64_t>() >= 1; }
bool is_flag(const Json& value) { return value.is_boolean(); }
bool is_object(const Json& value) { return value.is_object(); }
bool is_hint(const Json& value) { return value.is_string() || value.is_array(); }

constexpr Field kFields[] = {
    {"candidates_path", is_text, "text"},
    {"kernel_id", is_text, "text"},
    {"source_file", is_text, "text"},
    {"candidate", is_object, "an object"},
    {"backends", is_hint, "text or a list"},
    {"max_parallel", is_count, "a positive integer"},
    {"parallel_backends", is_flag, "true or false"},
    {"budget_minutes", is_positive, "a positive number"},
    {"kernel_budget_min", is_positive, "a positive number"},
    {"micro_speedup", is_number, "a number"},
    {"e2e_gain_pct", is_number, "a number"},
    {"correctness_passed", is_flag, "true or false"},
    {"accuracy_passed", is_flag, "true or false"},
    {"allow_empty_kernel_shape", is_flag, "true or false"},
    {"workspace_path", is_text, "text"},
    {"dry_run", is_flag, "true or false"},
};
constexpr std::array kOverrides = {"micro_speedup", "e2e_gain_pct", "correctness_passed",
                                   "accuracy_passed"};

std::optional<Json> check_payload(const Json& payload) {
  if (!payload.is_object()) return failure("invalid_payload", "the payload is no object");
  for (const Field& field : kFields) {
    const Json& value = value_of(payload, field.name);
    if (value.is_null() || field.fits(value)) continue;
    return failure("invalid_payload", fmt::format("`{}` is not {}", field.name, field.type));
  }
  if (flag_of(payload, "dry_run")) return std::nullopt;
  for (const char* field : kOverrides) {
    if (value_of(payload, field).is_null()) continue;
    return failure("invalid_payload", fmt::format("`{}` is allowed in a dry run only", field));
  }
  return std::nullopt;
}

class Handler {
 public:
  Handler(const Json& payload, const task::Context& context, const RecordPartial& record_partial,
          const Engines& engines)
      : payload_(payload),
        context_(context),
        record_partial_(record_partial),
        engines_(engines),
        requested_(text_of(payload, "kernel_id")) {}

  Json run() {
    if (auto wrong = check_payload(payload_)) return *wrong;
    if (const Json& given = value_of(payload_, "candidate"); given.is_object()) {
      return one(given);
    }
    if (auto wrong = read_candidates()) return *wrong;
    Json state;
    context_.state().read([&](const Json& document) { state = document; });
    const Selection selection = select_candidates(candidates_, state, context_.environment,
                                                  in_flight_ids(context_.layout()));
    if (!selection.failure.empty()) return failure(selection.failure, selection.message);
    if (selection.selected.empty()) return nothing_eligible(selection);
    if (!requested_.empty() && !is_eligible(selection)) return not_eligible(selection);
    if (selection.selected.size() == 1) return one(selection.selected.front());
    return batch(selection.selected);
  }

 private:
  std::optional<Json> read_candidates() {
    std::string path = text_of(payload_, "candidates_path");
    if (path.empty()) {
      path = text_of(context_.state().get("last_trace_analyze"), "candidates_path");
    }
    if (path.empty()) {
      return failure("missing_trace_analyze", "no trace was analysed, so there are no candidates");
    }
    std::error_code error;
    for (int i = 1; !fs::exists(path, error); ++i) {
      if (i == kArtifactTries || context_.stopped()) {
        return failure("missing_candidates_artifact", path + " does not exist");
      }
      std::mutex mutex;
      std::unique_lock lock(mutex);
      std::condition_variable_any never;
      never.wait_for(lock, context_.stop, kArtifactWait, [] { return false; });
    }
    auto document = read_json(path);
    if (!document) return failure("candidates_unreadable", document.error().message);
    candidates_ = std::move(*document);
    return std::nullopt;
  }

  static Json left_out(const Selection& selection) {
    Json rows = Json::array();
    for (const Skipped& skipped : selection.skipped) {
      rows.push_back({{"kernel_id", skipped.kernel_id},
                      {"name", text_of(skipped.row, "name")},
                      {"gpu_pct", number_of(skipped.row, "gpu_pct")},
                      {"reason", skipped.text},
                      {"detail", skipped.detail}});
    }
    return rows;
  }

  Json nothing_eligible(const Selection& selection) {
    if (!requested_.empty()) {
      const Json* row = resolve_kernel(candidates_, requested_);
      if (row == nullptr) return *early_exit(candidates_, requested_);
      return one(with_group(*row));
    }
    return {{"status", "skipped"},
            {"reason", "no_eligible_kernels"},
            {"kernels_considered", selection.skipped.size()},
            {"message",
             fmt::format("none of {} kernels is worth an attempt", selection.skipped.size())},
            {"left_out", left_out(selection)}};
  }

  // A named row that was not selected still belongs to its task.
  Json with_group(Json row) const {
    const Json& groups = value_of(candidates_, "task_groups");
    if (!groups.is_array()) return row;
    for (const Json& group : groups) {
      const auto ids = strings_of(value_of(group, "kernel_ids"));
      if (std::ranges::find(ids, text_of(row, "kernel_id")) == ids.end()) continue;
      row["task_group"] = group;
      break;
    }
    return row;
  }

  const Json* requested_row() const { return resolve_kernel(candidates_, requested_); }
  bool is_requested(const Json& row) const {
    const Json* wanted = requested_row();
    return wanted != nullptr && text_of(*wanted, "kernel_id") == text_of(row, "kernel_id");
  }
  bool is_eligible(const Selection& selection) const {
    return std::ranges::any_of(selection.selected,
                               [&](const Json& row) { return is_requested(row); });
  }
  Json not_eligible(const Selection& selection) const {
    const Json* wanted = requested_row();
    if (wanted == nullptr) return *early_exit(candidates_, requested_);
    const Skipped* skipped = selection.find_skipped(text_of(*wanted, "kernel_id"));
    return {{"status", "skipped"},
            {"reason", "requested_kernel_not_eligible"},
            {"requested_kernel_id", requested_},
            {"kernels_considered", selection.skipped.size() + selection.selected.size()},
            {"message", fmt::format("{} is left out: {}", requested_,
                                    skipped == nullptr ? "" : skipped->text)},
            {"skip_reason", skipped == nullptr ? "" : skipped->text},
            {"eligible_kernel_ids", selection.ids()}};
  }

  KernelTask make_task(Json row) const {
    const Environment& environment = context_.environment;
    KernelTask task;
    if (auto source = text_of(payload_, "source_file"); !source.empty() && is_requested(row)) {
      row["source_file"] = source;
    }
    task.candidate = std::move(row);
    task.dry_run = flag_of(payload_, "dry_run");
    const double from_environment = environment.number("KERNEL_OPT_BACKEND_BUDGET_MIN");
    task.budget_minutes = environment.has("KERNEL_OPT_BACKEND_BUDGET_MIN") && from_environment > 0
                              ? from_environment
                              : number_of(payload_, "budget_minutes", 90);
    const double kernel_minutes = environment.number("KERNEL_OPT_KERNEL_BUDGET_MIN");
    task.kernel_budget_minutes = number_of(
        payload_, "kernel_budget_min", kernel_minutes > 0 ? kernel_minutes : task.budget_minutes);
    const auto ignored = ignored_hints(payload_, environment);
    for (const std::string& name : ignored) {
      task.warnings.push_back(
          {{"code", "backend_hint_ignored"},
           {"message", fmt::format("the hint '{}' changes nothing: the backend is '{}'", name,
                                   selected_backend(environment))}});
    }
    task.backend_selection = {{"variable", "KERNEL_OPT_BACKEND_ORDER"},
                              {"value", environment.raw("KERNEL_OPT_BACKEND_ORDER").value_or("")},
                              {"selected", selected_backend(environment)},
                              {"ignored_hints", ignored}};
    for (const char* field : kOverrides) {
      if (const Json& value = value_of(payload_, field); !value.is_null()) {
        task.overrides[field] = value;
      }
    }
    return task;
  }

  GuardOptions guard_options() const {
    GuardOptions options;
    options.trusted_roots = {context_.workload.tree()};
    const std::string roots =
        context_.environment.text("INFERENCE_OPTIMIZER_FRAMEWORK_SOURCE_ROOTS");
    for (size_t begin = 0; begin < roots.size();) {
      const size_t end = std::min(roots.find(':', begin), roots.size());
      if (end > begin) options.trusted_roots.emplace_back(roots.substr(begin, end - begin));
      begin = end + 1;
    }
    const std::string workspace = text_of(payload_, "workspace_path");
    options.workspace = workspace.empty() ? context_.layout().session : fs::path(workspace);
    options.allow_empty_kernel_shape =
        flag_of(payload_, "allow_empty_kernel_shape",
                context_.state().get("allow_empty_kernel_shape") == Json(true));
    options.dry_run = flag_of(payload_, "dry_run");
    return options;
  }

  // One kernel through the guards; never throws.
  Json one(const Json& row) {
    const auto stopped = [&](Json result) {
      result["kernel_id"] = text_of(row, "kernel_id");
      result["source_file"] = source_of(row);
      result["gpu_pct"] = number_of(row, "gpu_pct");
      result["task_group_key"] = text_of(value_of(row, "task_group"), "task_group_key");
      return result;
    };
    if (context_.stopped()) return stopped(failure("cancelled", "the session was stopped"));
    try {
      const KernelTask task = make_task(row);
      if (auto wrong = check_candidate(task.candidate, guard_options(), context_.environment)) {
        return stopped(failure(wrong->error_class, wrong->message));
      }
      return optimize_kernel(context_, task, engines_, quiet());
    } catch (const std::exception& error) {
      return stopped(failure("subtask_exception", error.what()));
    }
  }

  // Builds keep the processors busy that a CPU's kernels are timed on.
  QuietMachine* quiet() {
    return context_.workload.device().starts_with("cpu") ? &machine_ : nullptr;
  }

  int64_t max_parallel() const {
    const Json& given = value_of(payload_, "max_parallel");
    const int64_t wanted = given.is_number_integer()
                               ? given.get<int64_t>()
                               : context_.environment.integer("KERNEL_OPT_MAX_PARALLEL");
    return std::clamp<int64_t>(wanted, 1, kMostParallel);
  }

  Json batch(std::vector<Json> rows) {
    // What was asked for goes first; everything that qualifies goes along.
    std::ranges::stable_partition(rows, [&](const Json& row) { return is_requested(row); });
    std::vector<Json> results(rows.size());
    std::atomic<size_t> next = 0;
    std::mutex recording;
    const auto work = [&] {
      for (size_t i = next++; i < rows.size(); i = next++) {
        results[i] = one(rows[i]);
        const std::lock_guard lock(recording);
        if (record_partial_) record_partial_(results[i]);
      }
    };
    const auto width = std::min<size_t>(static_cast<size_t>(max_parallel()), rows.size());
    {
      std::vector<std::jthread> threads;
      for (size_t i = 1; i < width; ++i) threads.emplace_back(work);
      work();
    }
    return aggregate(results);
  }

  static std::pair<int, double> merit(const Json& result) {
    const std::string decision = text_of(value_of(result, "proposal"), "decision");
    const int rank = decision == "KEEP" ? 2 : (decision.empty() ? 0 : 1);
    return {rank, number_of(value_of(result, "verification"), "micro_speedup")};
  }

  Json aggregate(const std::vector<Json>& results) const {
    Json aggregated = *std::ranges::max_element(results, {}, merit);
    Json ids = Json::array();
    for (const Json& result : results) ids.push_back(text_of(result, "kernel_id"));
    aggregated["batch_mode"] = true;
    aggregated["batch_kernel_ids"] = std::move(ids);
    aggregated["backend_order"] = {selected_backend(context_.environment)};
    aggregated["max_parallel"] = max_parallel();
    aggregated["parallel_backends"] = flag_of(
        payload_, "parallel_backends", context_.environment.flag("KERNEL_OPT_PARALLEL_BACKENDS"));
    aggregated["batch_results"] = results;
    aggregated["backend_fallback_attempts"] = Json::array();
    return aggregated;
  }

  const Json& payload_;
  const task::Context& context_;
  const RecordPartial& record_partial_;
  const Engines& engines_;
  std::string requested_;
  Json candidates_;
  QuietMachine machine_;
};

}  // namespace

Json run_optimization(const Json& payload, const task::Context& context,
                      const RecordPartial& record_partial, const Engines& engines) {
  return Handler(payload, context, record_partial, engines).run();
}

Json run_optimization(const Json& payload, const task::Context& context,
                      const RecordPartial& record_partial) {
  return run_optimization(payload, context, record_partial, installed_engines());
}

}  // namespace hyperloom::optimize
