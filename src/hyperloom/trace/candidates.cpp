#include "hyperloom/trace/candidates.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "hyperloom/trace/categories.h"

namespace hyperloom::trace {
namespace {

namespace fs = std::filesystem;
using workload::Dispatch;

// How many times the last cache one launch has to move before bandwidth bounds it.
constexpr double kOutOfCache = 4;

double rounded(double value, int digits) {
  const double scale = std::pow(10.0, digits);
  return std::round(value * scale) / scale;
}

struct Cost {
  double ns = 0;
  uint64_t calls = 0;
  double operations = 0;  // of all calls; 0 unknown
  std::string operation_type;
  std::vector<std::pair<uint64_t, uint64_t>> spans;
  std::map<std::pair<uint64_t, uint64_t>, uint64_t> shapes;  // workgroups, bytes -> calls
  std::string source_file;
  uint32_t source_line = 0;
};

struct Timeline {
  double span_ns = 0;
  double busy_ns = 0;
  double sum_ns = 0;
};

// Nanoseconds in which at least one of the spans runs.
double covered_ns(std::vector<std::pair<uint64_t, uint64_t>> spans) {
  std::ranges::sort(spans);
  double sum = 0;
  uint64_t covered = 0;
  for (const auto& [begin, end] : spans) {
    if (end > covered) sum += static_cast<double>(end - std::max(begin, covered));
    covered = std::max(covered, end);
  }
  return sum;
}

Timeline timeline(const std::vector<Dispatch>& dispatches) {
  Timeline line;
  std::vector<std::pair<uint64_t, uint64_t>> spans;
  uint64_t last = 0;
  for (const Dispatch& one : dispatches) {
    spans.emplace_back(one.begin_ns, one.end_ns);
    last = std::max(last, one.end_ns);
    line.sum_ns += static_cast<double>(one.end_ns - one.begin_ns);
  }
  line.busy_ns = covered_ns(std::move(spans));
  line.span_ns = static_cast<double>(last);
  return line;
}

std::string shape_text(uint64_t workgroups, uint64_t bytes) {
  std::string text = fmt::format("({})workgroups", workgroups);
  if (bytes != 0) text += fmt::format("<br>({})u8", bytes);
  return text;
}

double peak(const Json& peaks, std::string_view name) {
  if (!peaks.is_array()) return 0;
  for (const Json& row : peaks) {
    if (text_of(row, "name") == name) return number_of(row, "value");
  }
  return 0;
}

class Rows {
 public:
  Rows(const std::vector<Dispatch>& dispatches, const Surroundings& around)
      : around_(around), line_(timeline(dispatches)) {
    for (const Dispatch& one : dispatches) {
      Cost& cost = costs_[one.kernel];
      cost.ns += static_cast<double>(one.end_ns - one.begin_ns);
      ++cost.calls;
      cost.spans.emplace_back(one.begin_ns, one.end_ns);
      cost.operations += static_cast<double>(one.operations);
      if (!one.operation_type.empty()) cost.operation_type = one.operation_type;
      ++cost.shapes[{one.workgroups, one.bytes}];
      if (!one.source_file.empty()) {
        cost.source_file = one.source_file;
        cost.source_line = one.source_line;
      }
    }
  }

  const Timeline& line() const { return line_; }
  double idle_pct() const {
    return line_.span_ns > 0 ? 100 * (line_.span_ns - line_.busy_ns) / line_.span_ns : 0;
  }

  Json rows() const {
    std::vector<std::pair<std::string, const Cost*>> ranked;
    for (const auto& [name, cost] : costs_) ranked.emplace_back(name, &cost);
    std::ranges::stable_sort(
        ranked, [](const auto& a, const auto& b) { return a.second->ns > b.second->ns; });
    Json all = Json::array();
    for (size_t i = 0; i < ranked.size(); ++i) {
      if (static_cast<int64_t>(i) >= around_.top_k) break;
      all.push_back(row(fmt::format("k{:03}", i + 1), ranked[i].first, *ranked[i].second));
    }
    return all;
  }

 private:
  Json row(const std::string& id, const std::string& name, const Cost& cost) const {
    Json row = {
        {"kernel_id", id},
        {"name", name},
        {"operation", name},
        {"duration_us", rounded(cost.ns / 1000, 3)},
        {"call_count", cost.calls},
        {"gpu_pct", rounded(line_.sum_ns > 0 ? 100 * cost.ns / line_.sum_ns : 0, 3)},
        {"gpu_pct_basis", "e2e_window"},
        {"e2e_share", rounded(line_.span_ns > 0 ? covered_ns(cost.spans) / line_.span_ns : 0, 6)},
        {"candidate_source", "native_trace"},
        {"shape_provenance", "native_trace"},
        {"shape_dispatchable", true},
        {"is_multigpu", false},
        {"num_gpus_recommended", 1},
        {"runtime_generated_kernel", false},
        {"vendor_dispatch_wrapper", false},
        {"kernel_kind", "loom"},
        {"kernel_category", category_of(name)},
        {"e2e_transferable", true}};
    add_shapes(row, cost);
    add_source(row, name, cost);
    add_roofline(row, cost);
    if (idle_pct() > around_.idle_threshold_pct) row["blocked_by"] = "high_gpu_idle_pct";
    return row;
  }

  static void add_shapes(Json& row, const Cost& cost) {
    Json shapes = Json::array();
    Json inputs = Json::array();
    Json cases = Json::array();
    for (const auto& [shape, calls] : cost.shapes) {
      const std::string text = shape_text(shape.first, shape.second);
      shapes.push_back(text);
      inputs.push_back({{"call_num", calls}, {"shape", text}});
      cases.push_back({{"case_id", fmt::format("case_{:03}", cases.size() + 1)},
                       {"shape", text},
                       {"count", calls},
                       {"selector", {{"WORKGROUPS", shape.first}}}});
    }
    row["shapes"] = std::move(shapes);
    row["input_shapes"] = std::move(inputs);
    row["invocation_cases"] = std::move(cases);
  }

  void add_source(Json& row, const std::string& name, const Cost& cost) const {
    const fs::path relative(cost.source_file);
    const bool known = std::ranges::find(around_.files, relative) != around_.files.end();
    row["reusable_native_kernel"] = known;
    row["source_function"] = name;
    row["source_type"] = "loom";
    row["recommended_backends"] = known ? Json::array({"forge"}) : Json::array();
    if (!known) {
      row["source_resolution_method"] = "unresolved";
      row["skip_reason"] =
          cost.source_file.empty() ? "source file not resolved" : "not below the workload's tree";
      return;
    }
    const fs::path source = around_.tree / relative;
    row["source_file"] = source.string();
    row["source_line"] = cost.source_line;
    row["source_resolution_method"] = "symbol_index";
    row["kernel_repo"] = around_.tree.string();
    row["task_group_key"] = task_group_key(source, name);
    row["identity_route"] = "native";
  }

  // Time per call at the ceiling that binds, over the time that a call takes.
  void add_roofline(Json& row, const Cost& cost) const {
    row["roofline_source"] = "placeholder";
    row["bound_type"] = "unknown";
    if (cost.ns <= 0) return;
    const double bandwidth = peak(around_.device_peaks, "bandwidth");
    const double compute = peak(around_.device_peaks, "compute_" + cost.operation_type);
    const double bytes = moved_bytes(cost);
    const double seconds = cost.ns * 1e-9;
    const double used_compute = compute > 0 ? 100 * cost.operations / seconds / compute : 0;
    const double used_bandwidth = bandwidth > 0 ? 100 * bytes / seconds / bandwidth : 0;
    if (used_compute <= 0 && used_bandwidth <= 0) return;
    row["roofline_source"] = "analytical";
    row["bound_type"] = used_compute >= used_bandwidth ? "compute" : "memory";
    const auto capped = [](double used) { return rounded(std::min(100.0, used), 3); };
    if (used_compute > 0) row["compute_utilization_pct"] = capped(used_compute);
    if (used_bandwidth > 0) row["bandwidth_utilization_pct"] = capped(used_bandwidth);
    if (bytes > 0 && cost.operations > 0) {
      row["arithmetic_intensity"] = rounded(cost.operations / bytes, 6);
      row["flops_per_byte"] = row["arithmetic_intensity"];
    }
    const double used = std::max(used_compute, used_bandwidth);
    row["efficiency_percent"] = capped(used);
    row["efficiency_uncapped_pct"] = rounded(used, 3);
    if (used > 100) row["roofline_estimate_capped"] = true;
  }

  // What has to come from memory; 0 where the caches may hold it.
  double moved_bytes(const Cost& cost) const {
    double bytes = 0;
    for (const auto& [shape, calls] : cost.shapes) {
      bytes += static_cast<double>(shape.second) * static_cast<double>(calls);
    }
    const double each = bytes / static_cast<double>(cost.calls);
    const bool leaves =
        around_.cache_bytes != 0 && each >= kOutOfCache * static_cast<double>(around_.cache_bytes);
    return leaves ? bytes : 0;
  }

  const Surroundings& around_;
  Timeline line_;
  std::map<std::string, Cost> costs_;
};

// Every source function is one group here, since rows are kernels by name.
Json groups(Json& rows) {
  Json all = Json::array();
  for (Json& row : rows) {
    const std::string key = text_of(row, "task_group_key");
    if (key.empty()) continue;
    const std::string id = fmt::format("tg{:03}", all.size() + 1);
    row["task_group_id"] = id;
    all.push_back({{"task_group_id", id},
                   {"task_group_key", key},
                   {"identity_route", "native"},
                   {"operator_identity", Json::parse(key)},
                   {"legacy_task_group_keys", Json::array()},
                   {"source_path", row["source_file"]},
                   {"definition_line", row["source_line"]},
                   {"function_name", row["source_function"]},
                   {"ast_resolved", true},
                   {"primary_kernel_id", row["kernel_id"]},
                   {"kernel_ids", Json::array({row["kernel_id"]})},
                   {"rows", 1},
                   {"aggregate_duration_us", row["duration_us"]},
                   {"aggregate_call_count", row["call_count"]},
                   {"aggregate_gpu_pct", row["gpu_pct"]},
                   {"shape_cases", row["invocation_cases"]}});
  }
  return all;
}

}  // namespace

std::string task_group_key(const fs::path& source, const std::string& function) {
  return compact({{"version", 2},
                  {"source_kind", "native"},
                  {"source_path", source.lexically_normal().string()},
                  {"operation", function},
                  {"function", function}});
}

Json candidates(const std::vector<Dispatch>& dispatches, const Surroundings& around) {
  const Rows rows(dispatches, around);
  Json hot = rows.rows();
  Json grouped = groups(hot);
  Json routable = Json::array();
  Json skipped = Json::array();
  Json reusable = Json::array();
  for (const Json& row : hot) {
    if (flag_of(row, "reusable_native_kernel")) {
      routable.push_back(row["kernel_id"]);
      reusable.push_back(row["kernel_id"]);
    } else {
      skipped.push_back({{"kernel_id", row["kernel_id"]},
                         {"name", row["name"]},
                         {"skip_reason", row["skip_reason"]},
                         {"gpu_pct", row["gpu_pct"]}});
    }
  }
  Json warnings = Json::array();
  if (rows.idle_pct() > around.idle_threshold_pct) {
    warnings.push_back({{"code", "high_gpu_idle_pct"},
                        {"message", fmt::format("the device is idle for {:.1f} % of the window",
                                                rows.idle_pct())}});
  }
  return {{"model_name", around.model_name},
          {"framework", "loom"},
          {"target_platform", around.target_platform},
          {"analysis_mode", "deterministic"},
          {"runtime_env", Json::object()},
          {"trace_input_type", "native"},
          {"source", "native_trace"},
          {"dry_run", false},
          {"window",
           {{"span_us", rounded(rows.line().span_ns / 1000, 3)},
            {"busy_us", rounded(rows.line().busy_ns / 1000, 3)},
            {"idle_pct", rounded(rows.idle_pct(), 3)}}},
          {"hot_kernels", std::move(hot)},
          {"routable_kernels", std::move(routable)},
          {"skipped_kernels", std::move(skipped)},
          {"task_groups", std::move(grouped)},
          {"reusable_native_kernel_ids", std::move(reusable)},
          {"trace_health_warnings", std::move(warnings)}};
}

Json roofline(const Json& candidates, const std::string& trace_input) {
  Json kernels = Json::array();
  for (const Json& row : value_of(candidates, "hot_kernels")) {
    Json kept = Json::object();
    for (const char* field :
         {"kernel_id", "name", "gpu_pct", "e2e_share", "duration_us", "call_count", "bound_type",
          "arithmetic_intensity", "flops_per_byte", "compute_utilization_pct",
          "bandwidth_utilization_pct", "efficiency_percent", "efficiency_uncapped_pct",
          "roofline_estimate_capped", "roofline_source"}) {
      if (row.contains(field)) kept[field] = row[field];
    }
    kernels.push_back(std::move(kept));
  }
  return {{"schema_version", 1},
          {"source", "native_trace"},
          {"trace_input", trace_input},
          {"trace_input_type", "native"},
          {"kernels", std::move(kernels)}};
}

}  // namespace hyperloom::trace
