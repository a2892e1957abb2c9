#include "hyperloom/trace/analyze.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <map>

#include "hyperloom/core/durable.h"
#include "hyperloom/core/fault.h"
#include "hyperloom/lane/gates.h"
#include "hyperloom/trace/candidates.h"
#include "hyperloom/trace/chrome.h"
#include "hyperloom/trace/enrich.h"
#include "hyperloom/trace/input.h"
#include "loom/base/hash.h"

namespace hyperloom::trace {
namespace {

namespace fs = std::filesystem;

constexpr const char* kTool = "trace_analyze";
constexpr double kCallTimeout = 120;
constexpr size_t kSnapshots = 50;

Json failed(const Error& error) {
  Json result = {{"status", "failed"},
                 {"error_class", error.error_class},
                 {"error", error.message},
                 {"hot_kernels", Json::array()}};
  if (!error.hint.empty()) result["hint"] = error.hint;
  return result;
}

Json dispatch_json(const workload::Dispatch& one) {
  return {{"kernel", one.kernel},           {"begin_ns", one.begin_ns},
          {"end_ns", one.end_ns},           {"thread", one.thread},
          {"workgroups", one.workgroups},   {"bytes", one.bytes},
          {"source_file", one.source_file}, {"source_line", one.source_line},
          {"operations", one.operations},   {"operation_type", one.operation_type}};
}

workload::Dispatch dispatch_of(const Json& row) {
  workload::Dispatch one;
  one.kernel = text_of(row, "kernel");
  one.begin_ns = row.value("begin_ns", uint64_t{0});
  one.end_ns = row.value("end_ns", uint64_t{0});
  one.thread = row.value("thread", uint32_t{0});
  one.workgroups = row.value("workgroups", uint64_t{0});
  one.bytes = row.value("bytes", uint64_t{0});
  one.source_file = text_of(row, "source_file");
  one.source_line = row.value("source_line", uint32_t{0});
  one.operations = row.value("operations", uint64_t{0});
  one.operation_type = text_of(row, "operation_type");
  return one;
}

// The dispatches of one issue, in a fresh process, through the meter.
Result<Json> measure(const task::Context& context, const workload::Variant& variant,
                     const std::string& tag) {
  auto bench = context.workload.start(context.call_timeout(kCallTimeout), context.stop);
  if (!bench) return std::unexpected(bench.error());
  const auto loaded = (*bench)->load("A", variant);
  if (!loaded) return std::unexpected(loaded.error());
  return context.meter.value(fmt::format("trace|{}|{}", loaded->content_hash, tag),
                             [&]() -> Result<Json> {
                               // The first issues fault pages in and warm the caches.
                               if (auto warm = (*bench)->throughput("A", 0.05); !warm)
                                 return std::unexpected(warm.error());
                               const auto dispatches = (*bench)->trace("A");
                               if (!dispatches) return std::unexpected(dispatches.error());
                               Json rows = Json::array();
                               for (const workload::Dispatch& one : *dispatches)
                                 rows.push_back(dispatch_json(one));
                               return rows;
                             });
}

Result<void> save_text(const fs::path& path, std::string_view text) {
  if (auto made = make_folder(path.parent_path()); !made) return made;
  fault_point("analysis file " + path.filename().string());
  return write_durable(path, text);
}
std::string file_text(const Json& document) {
  return document.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}
Result<void> save(const fs::path& path, const Json& document) {
  return save_text(path, file_text(document));
}

// Measured once in a session, whatever the number of analyses and resumes.
Result<Json> device_peaks(const task::Context& context) {
  const Json known = context.state().get("device_peaks");
  if (known.is_array() && !known.empty()) return known;
  auto peaks = context.meter.value("peaks|" + context.workload.device(), [&]() -> Result<Json> {
    auto lane =
        context.lanes.acquire("benchmark_lane", "device_peaks", context.deadline, context.stop);
    if (!lane) return std::unexpected(lane.error());
    return context.workload.measure_peaks(context.stop);
  });
  if (!peaks) {
    if (peaks.error().error_class == "not_available") return Json::array();
    return std::unexpected(peaks.error());
  }
  auto saved =
      context.state().update("device_peaks", [&](Json& state) { state["device_peaks"] = *peaks; });
  if (!saved) return std::unexpected(saved.error());
  return *peaks;
}

std::string analysis_text(const Json& candidates) {
  const Json& window = value_of(candidates, "window");
  std::string text = fmt::format(
      "# Analysis of {}\n\nOne issue takes {:.3f} us; the device is idle for {:.1f} % of it.\n\n"
      "| kernel | name | us | share % | calls | source |\n|---|---|---|---|---|---|\n",
      text_of(candidates, "model_name"), number_of(window, "span_us"),
      number_of(window, "idle_pct"));
  for (const Json& row : value_of(candidates, "hot_kernels")) {
    text +=
        fmt::format("| {} | {} | {:.3f} | {:.3f} | {} | {} |\n", text_of(row, "kernel_id"),
                    text_of(row, "name"), number_of(row, "duration_us"), number_of(row, "gpu_pct"),
                    row.value("call_count", uint64_t{0}),
                    row.contains("source_file") ? fmt::format("{}:{}", text_of(row, "source_file"),
                                                              row.value("source_line", uint32_t{0}))
                                                : text_of(row, "skip_reason"));
  }
  return text;
}

std::string route_of(const Json& payload, const Environment& environment) {
  return text_of(payload, "analysis_route", environment.text("HYPERLOOM_TRACE_ANALYSIS_ROUTE"));
}

void check_route(const Json& payload, const Environment& environment, Json& warnings) {
  const std::string route = route_of(payload, environment);
  for (const char* known : {"", "agent", "deterministic", "bypass"}) {
    if (route == known) return;
  }
  warnings.push_back({{"code", "invalid_analysis_route"},
                      {"message", fmt::format("'{}' is no route; 'agent' is taken", route)}});
}

// The last twenty, without their ends.
Json last_lines(const std::string& log) {
  constexpr size_t kMost = 20;
  Json lines = Json::array();
  for (size_t at = 0; at < log.size();) {
    const size_t end = std::min(log.find('\n', at), log.size());
    lines.push_back(log.substr(at, end - at));
    at = end + 1;
  }
  while (lines.size() > kMost) lines.erase(lines.begin());
  return lines;
}

class Analysis {
 public:
  Analysis(const Json& payload, const task::Context& context)
      : payload_(payload), context_(context), layout_(context.layout()) {
    const Json last = context.state().get("last_trace_analyze");
    snapshot_ = static_cast<int64_t>(number_of(last, "roofline_snapshot_id")) + 1;
    run_id_ = "tl-" + loom::sha256_hex(fmt::format("{}|{}", layout_.id, snapshot_)).substr(0, 4);
  }

  Json run() {
    if (auto begun = status("running", "load_trace", ""); !begun) return failed(begun.error());
    auto result = analyze();
    if (!result) {
      (void)status("failed", "done", result.error().message);
      return failed(result.error());
    }
    if (auto done = status("succeeded", "done", ""); !done) return failed(done.error());
    return std::move(*result);
  }

 private:
  Result<Json> analyze() {
    auto input = read_input();
    if (!input) return std::unexpected(input.error());
    const fs::path& path = input->path;
    const auto peaks = device_peaks(context_);
    if (!peaks) return std::unexpected(peaks.error());
    const auto hash = workload::tree_hash(context_.workload.tree(), context_.workload.files());
    if (!hash) return std::unexpected(hash.error());

    Json artifact = candidates(input->dispatches, surroundings(*peaks));
    artifact["dry_run"] = dry_run();
    const Json best = context_.state().get("current_best");
    enrich(artifact["hot_kernels"], best, context_.environment, report_path());
    Json& warnings = artifact["trace_health_warnings"];
    for (Json& warning : input->warnings) warnings.push_back(std::move(warning));
    check_route(payload_, context_.environment, warnings);
    if (const std::string other = text_of(payload_, "framework", "loom"); other != "loom") {
      warnings.push_back({{"code", "stale_framework_overridden"},
                          {"message", fmt::format("'{}' is not the session's framework", other)}});
    }
    artifact["trace_report_path"] = report_path().string();
    artifact["trace_input"] = path.string();
    // A stub must not take the place of an analysis.
    if (dry_run()) return Json{{"status", "ok"}, {"dry_run", true}, {"hot_kernels", Json::array()}};
    if (auto written = write(artifact, path.string()); !written) {
      return std::unexpected(written.error());
    }
    return result(artifact, path.string(), *hash);
  }

  bool dry_run() const { return flag_of(payload_, "dry_run"); }

  Result<Input> read_input() const {
    const std::string path = text_of(payload_, "trace_input", text_of(payload_, "trace_dir"));
    // A stub needs no trace.
    if (dry_run()) return Input{path, {}};
    if (path.empty()) {
      return fail("missing_trace_input", "neither trace_input nor trace_dir is given",
                  "name the trace of a profile");
    }
    return select_input(path);
  }

  Surroundings surroundings(const Json& peaks) const {
    Surroundings around;
    around.tree = context_.workload.tree();
    around.files = context_.workload.files();
    around.model_name = context_.workload.name();
    around.target_platform = context_.workload.device();
    around.device_peaks = peaks;
    const long cache = ::sysconf(_SC_LEVEL3_CACHE_SIZE);
    around.cache_bytes = cache > 0 ? static_cast<uint64_t>(cache) : 0;
    around.idle_threshold_pct =
        context_.environment.number("HYPERLOOM_TRACELENS_IDLE_PCT_THRESHOLD");
    const double top = number_of(
        payload_, "top_k",
        static_cast<double>(context_.environment.integer("HYPERLOOM_KERNEL_CANDIDATES_TOP_K")));
    around.top_k = std::max<int64_t>(1, static_cast<int64_t>(top));
    if (route_of(payload_, context_.environment) == "bypass") {
      around.top_k = std::clamp<int64_t>(around.top_k, 10, 15);
    }
    return around;
  }

  fs::path report_path() const { return layout_.run() / "tracelens" / "tracelens_report.json"; }
  fs::path analysis_path() const { return layout_.run() / "tracelens" / "analysis.md"; }
  fs::path roofline_path() const {
    return layout_.reports() / text_of(payload_, "roofline_output_name", "kernel_roofline.json");
  }

  Result<void> write(const Json& artifact, const std::string& input) const {
    const fs::path folder = layout_.run() / "tracelens";
    Json summary = {{"counts",
                     {{"kernels", artifact["hot_kernels"].size()},
                      {"tasks", artifact["routable_kernels"].size()},
                      {"skipped", artifact["skipped_kernels"].size()},
                      {"task_groups", artifact["task_groups"].size()},
                      {"warnings", artifact["trace_health_warnings"].size()}}},
                    {"tasks", artifact["routable_kernels"]},
                    {"skipped", artifact["skipped_kernels"]},
                    {"task_groups", artifact["task_groups"]},
                    {"warnings", artifact["trace_health_warnings"]}};
    const Json state = {{"session_id", layout_.id},
                        {"last_tool", kTool},
                        {"last_run_id", run_id_},
                        {"updated_at", utc_now()},
                        {"model_name", artifact["model_name"]},
                        {"framework", artifact["framework"]}};
    for (const auto& [path, document] : std::vector<std::pair<fs::path, Json>>{
             {folder / "summary.json", summary},
             {report_path(),
              {{"window", artifact["window"]}, {"kernels", artifact["hot_kernels"]}}},
             {roofline_path(), roofline_report(artifact, input)},
             {layout_.run() / "session_state.json", state},
             {layout_.candidates(), artifact}}) {
      if (auto saved = save(path, document); !saved) return saved;
    }
    const std::string text = analysis_text(artifact);
    if (auto saved = save_text(analysis_path(), text); !saved) return saved;
    if (auto saved = save_text(folder / "system_findings" / "window.md", window_finding(artifact));
        !saved) {
      return saved;
    }
    for (const auto& [category, finding] : category_findings(artifact)) {
      if (auto saved = save_text(folder / "category_findings" / (category + ".md"), finding);
          !saved) {
        return saved;
      }
    }
    return {};
  }

  // One report for each category that has kernels.
  static std::map<std::string, std::string> category_findings(const Json& artifact) {
    std::map<std::string, std::string> findings;
    for (const Json& row : artifact["hot_kernels"]) {
      const std::string category = text_of(row, "kernel_category");
      std::string& text = findings[category];
      if (text.empty()) {
        text = fmt::format(
            "# {}\n\n| kernel | name | us | share % | bound | efficiency % |\n"
            "|---|---|---|---|---|---|\n",
            category);
      }
      const std::string efficiency =
          row.contains("efficiency_percent")
              ? fmt::format("{:.1f}", number_of(row, "efficiency_percent"))
              : "unknown";
      text += fmt::format("| {} | {} | {:.3f} | {:.3f} | {} | {} |\n", text_of(row, "kernel_id"),
                          text_of(row, "name"), number_of(row, "duration_us"),
                          number_of(row, "gpu_pct"), text_of(row, "bound_type"), efficiency);
    }
    return findings;
  }

  Json roofline_report(const Json& artifact, const std::string& input) const {
    Json report = roofline(artifact, input);
    report["analysis_md_path"] = analysis_path().string();
    report["kernel_candidates_path"] = layout_.candidates().string();
    report["roofline_json_path"] = roofline_path().string();
    return report;
  }

  static std::string window_finding(const Json& artifact) {
    const Json& window = artifact["window"];
    return fmt::format(
        "# The window\n\nSpan {:.3f} us, of which kernels run for {:.3f} us: {:.1f} % idle.\n",
        number_of(window, "span_us"), number_of(window, "busy_us"), number_of(window, "idle_pct"));
  }

  Json result(const Json& artifact, const std::string& input, const std::string& hash) const {
    return {
        {"status", "ok"},
        {"dry_run", false},
        {"framework", "loom"},
        {"trace_input", input},
        {"steady_state_trace", input},
        {"candidates_path", layout_.candidates().string()},
        {"analysis_key", lane::analysis_key(layout_.candidates().string(), file_text(artifact))},
        {"artifact_paths", {{"kernel_candidates", layout_.candidates().string()}}},
        {"kernel_roofline_path", roofline_path().string()},
        {"hot_kernels", artifact["hot_kernels"]},
        {"skipped_kernels", artifact["skipped_kernels"]},
        {"task_groups", artifact["task_groups"]},
        {"reusable_native_kernel_ids", artifact["reusable_native_kernel_ids"]},
        {"trace_health_warnings", artifact["trace_health_warnings"]},
        {"trace_report_path", report_path().string()},
        {"analysis_md_path", analysis_path().string()},
        {"analysis_md_text", analysis_text(artifact)},
        {"roofline_snapshot_id", snapshot_},
        {"run_id", run_id_},
        {"tree_hash", hash}};
  }

  Result<void> status(const std::string& state, const std::string& step, const std::string& error) {
    const std::string line =
        fmt::format("{} {} {}{}{}\n", utc_now(), state, step, error.empty() ? "" : ": ", error);
    log_ += line;
    if (auto saved = save_text(layout_.log(kTool, run_id_), log_); !saved) return saved;
    if (started_.empty()) started_ = utc_now();
    Json row = {{"tool", kTool},
                {"run_id", run_id_},
                {"state", state},
                {"current_step", step},
                {"pid", ::getpid()},
                {"started_at", started_},
                {"updated_at", utc_now()},
                {"log_path", layout_.log(kTool, run_id_).string()},
                {"offset_bytes", log_.size()},
                {"artifact_paths", {{"kernel_candidates", layout_.candidates().string()}}}};
    row["last_lines"] = last_lines(log_);
    if (state != "running") {
      row["ended_at"] = utc_now();
      const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin_;
      row["duration_seconds"] = took.count();
    }
    if (!error.empty()) row["error"] = error;
    return save(layout_.status(kTool, run_id_), row);
  }

  const Json& payload_;
  const task::Context& context_;
  const session::Layout& layout_;
  int64_t snapshot_ = 1;
  std::string run_id_;
  std::string log_;
  std::string started_;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

// Collectives are their lane's, so nobody else is offered them.
void withhold_collectives(Json& last, const Json& rows) {
  Json withheld = Json::array();
  for (const Json& row : rows) {
    if (lane::is_collective(row)) withheld.push_back(text_of(row, "kernel_id"));
  }
  if (withheld.empty()) return;
  Json kept = Json::array();
  for (const Json& id : value_of(last, "reusable_native_kernel_ids")) {
    if (std::ranges::find(withheld, id) == withheld.end()) kept.push_back(id);
  }
  last["reusable_native_kernel_ids"] = std::move(kept);
  last["trace_health_warnings"].push_back({{"code", "collective_lane_withheld_kernels"},
                                           {"message", "collectives are left to their lane"},
                                           {"kernel_ids", std::move(withheld)}});
}

Json first_of(const Json& rows, size_t count) {
  Json kept = Json::array();
  for (const Json& row : rows) {
    if (kept.size() == count) break;
    kept.push_back(row);
  }
  return kept;
}

}  // namespace

Result<std::string> profile(const task::Context& context, const std::string& tag) {
  workload::Variant variant{.tree = context.workload.tree()};
  const Json best = context.state().get("current_best");
  if (value_of(best, "extra_envs").is_object()) variant.envs = best["extra_envs"];
  auto lane = context.lanes.acquire("profile_lane", "profile", context.deadline, context.stop);
  if (!lane) return std::unexpected(lane.error());
  const auto rows = measure(context, variant, tag);
  if (!rows) return std::unexpected(rows.error());
  std::vector<workload::Dispatch> dispatches;
  for (const Json& row : *rows) dispatches.push_back(dispatch_of(row));
  const fs::path path =
      context.layout().session / "profiles" / session::safe_name(tag) / "trace.json";
  if (auto saved = save(path, chrome_trace(context.workload.name(), dispatches)); !saved) {
    return std::unexpected(saved.error());
  }
  auto recorded = context.state().update(
      "profile", [&](Json& state) { state["last_profile_trace"] = path.string(); });
  if (!recorded) return std::unexpected(recorded.error());
  return path.string();
}

Json trace_analyze(const Json& payload, const task::Context& context) {
  task::Context limited = context;
  const double seconds = 60 * number_of(payload, "budget_minutes", 60);
  limited.deadline = context.deadline.earlier(Deadline::in_seconds(seconds));
  return Analysis(payload, limited).run();
}

void record_trace_analyze(Json& state, const Json& payload, const Json& result) {
  // Nothing was analyzed.
  if (flag_of(result, "dry_run")) return;
  Json last = {{"analysis_route", text_of(payload, "analysis_route")}};
  for (const char* field :
       {"trace_input", "steady_state_trace", "candidates_path", "kernel_roofline_path",
        "task_groups", "reusable_native_kernel_ids", "trace_health_warnings", "analysis_md_path",
        "analysis_md_text", "analysis_key", "roofline_snapshot_id", "tree_hash"}) {
    if (result.contains(field)) last[field] = result[field];
  }
  withhold_collectives(last, value_of(result, "hot_kernels"));
  // What was asked for, where that is a folder or another name of the file.
  const std::string asked = text_of(payload, "trace_input", text_of(payload, "trace_dir"));
  if (!asked.empty() && asked != text_of(last, "trace_input")) last["trace_dir"] = asked;
  last["hot_kernels_top15"] = first_of(value_of(result, "hot_kernels"), 15);
  last["kernel_roofline_top15"] = last["hot_kernels_top15"];
  last["skipped_kernels_top"] = first_of(value_of(result, "skipped_kernels"), 15);
  last["roofline_baseline_gain_at_snapshot"] = number_of(state, "cumulative_gain_validated");
  last["ts"] = utc_now();
  state["last_trace_analyze"] = last;

  const Json& best = value_of(state, "current_best");
  Json& snapshots = state["roofline_snapshots"];
  if (!snapshots.is_array()) snapshots = Json::array();
  snapshots.push_back({{"id", value_of(last, "roofline_snapshot_id")},
                       {"tput", number_of(best, "tput", number_of(state, "baseline_tput"))},
                       {"comm_pct", 0.0},  // one device: there is nothing to communicate with
                       {"tree_hash", value_of(last, "tree_hash")},
                       {"ts", last["ts"]}});
  // The first one stays, as what everything began with.
  if (snapshots.size() > kSnapshots) snapshots.erase(snapshots.begin() + 1);
}

}  // namespace hyperloom::trace
