#include "hyperloom/report/report.h"

#include <fmt/format.h>

#include "hyperloom/lane/engines.h"

namespace hyperloom::report {
namespace {

const Json& array_of(const Json& object, std::string_view key) {
  static const Json empty = Json::array();
  const Json& value = value_of(object, key);
  return value.is_array() ? value : empty;
}

int64_t whole(const Json& object, std::string_view key) {
  const Json& value = value_of(object, key);
  return value.is_number_integer() ? value.get<int64_t>() : 0;
}

Json ledger_rows(const Json& state) {
  Json rows = Json::array();
  for (const Json& row : array_of(state, "gain_ledger")) {
    rows.push_back({{"seq", whole(row, "seq")},
                    {"kind", text_of(row, "kind")},
                    {"integration_id", text_of(row, "integration_id")},
                    {"before", decimal(whole(row, "before"))},
                    {"after", decimal(whole(row, "after"))},
                    {"delta_tput", decimal(whole(row, "delta_tput"))},
                    {"ts", text_of(row, "ts")}});
  }
  return rows;
}

void add_throughput(Json& report, const Json& state) {
  const double measured = number_of(state, "baseline_tput");
  if (!(measured > 0)) {
    report["outcome"] = "nothing_measured";
    return;
  }
  const Json& ledger = array_of(state, "gain_ledger");
  // The first row begins at the baseline, and the last one ends where the stack is.
  const auto baseline =
      ledger.empty() ? static_cast<int64_t>(measured * 1e6 + 0.5) : whole(ledger.front(), "before");
  const int64_t last = ledger.empty() ? baseline : whole(ledger.back(), "after");
  bool kept = false;
  for (const Json& row : ledger) kept = kept || text_of(row, "kind") == "keep";
  report["outcome"] = kept && last > baseline ? "improved" : "no_gain";
  report["unit"] = text_of(state, "throughput_unit", "issues/s");
  report["baseline_tput"] = decimal(baseline);
  report["final_tput"] = decimal(last);
  report["delta_tput"] = decimal(last - baseline);
  report["gain_pct"] = static_cast<double>(last - baseline) / static_cast<double>(baseline) * 100.0;
}

Json kept_entries(const Json& state) {
  Json entries = Json::array();
  for (const Json& entry : array_of(state, "optimization_stack")) {
    Json shown = Json::object();
    for (const char* key : {"action", "kernel_id", "kernel_name", "target_file", "integration_id",
                            "patch_path", "backend", "gain_pct", "description"}) {
      if (entry.contains(key)) shown[key] = entry[key];
    }
    entries.push_back(std::move(shown));
  }
  return entries;
}

Json kept_configuration(const Json& state) {
  const Json& envs = value_of(value_of(state, "current_best"), "extra_envs");
  return envs.is_object() ? envs : Json::object();
}

Json waiting_records(const Json& state) {
  Json rows = Json::array();
  const Json& queue = value_of(state, "pending_kernel_integrations");
  if (!queue.is_object()) return rows;
  for (const auto& [id, record] : queue.items()) {
    const std::string status = text_of(record, "status");
    if (status != "waiting" && status != "pending" && status != "dispatch_failed") continue;
    rows.push_back({{"integration_id", id},
                    {"kernel_id", text_of(record, "kernel_id")},
                    {"status", status},
                    {"reason", text_of(record, "reason", text_of(record, "waiting_reason"))}});
  }
  return rows;
}

Json missing() {
  Json rows = Json::array();
  for (const lane::MissingEngine& engine : lane::missing_engines()) {
    rows.push_back({{"kind", engine.kind}, {"missing", engine.what}, {"needs", engine.needs}});
  }
  return rows;
}

std::string headline(const Json& report) {
  const std::string outcome = text_of(report, "outcome");
  if (outcome == "nothing_measured") return "Nothing was measured.\n";
  const std::string unit = text_of(report, "unit");
  const std::string baseline = text_of(report, "baseline_tput");
  if (outcome == "no_gain") {
    return fmt::format("No gain: the program runs at {} {} as before ({}).\n",
                       text_of(report, "final_tput"), unit, baseline);
  }
  return fmt::format("**{:+.2f} %** end to end: {} → {} {}.\n", number_of(report, "gain_pct"),
                     baseline, text_of(report, "final_tput"), unit);
}

std::string table(const Json& rows, std::initializer_list<std::string_view> columns) {
  std::string text = "|", rule = "|";
  for (const auto column : columns) {
    text += fmt::format(" {} |", column);
    rule += "---|";
  }
  text += "\n" + rule + "\n";
  for (const Json& row : rows) {
    text += "|";
    for (const auto column : columns) {
      const Json& value = value_of(row, column);
      std::string cell = value.is_string()         ? value.get<std::string>()
                         : value.is_null()         ? ""
                         : value.is_number_float() ? fmt::format("{:.3f}", value.get<double>())
                                                   : compact(value);
      for (char& c : cell) {
        if (c == '|' || c == '\n') c = ' ';
      }
      text += fmt::format(" {} |", cell);
    }
    text += "\n";
  }
  return text;
}

void add_section(std::string& text, std::string_view title, const Json& rows,
                 std::initializer_list<std::string_view> columns) {
  if (rows.empty()) return;
  text += fmt::format("\n## {}\n\n{}", title, table(rows, columns));
}

}  // namespace

std::string decimal(int64_t millionths) {
  const uint64_t magnitude = millionths < 0 ? uint64_t{0} - static_cast<uint64_t>(millionths)
                                            : static_cast<uint64_t>(millionths);
  std::string text = fmt::format("{}{}", millionths < 0 ? "-" : "", magnitude / 1000000);
  std::string fraction = fmt::format("{:06}", magnitude % 1000000);
  while (!fraction.empty() && fraction.back() == '0') fraction.pop_back();
  if (!fraction.empty()) text += "." + fraction;
  return text;
}

Json build(const Json& manifest, const Json& state, const std::vector<Json>& decisions,
           const Json& kernels) {
  Json report = {{"schema_version", 1},
                 {"session_id", text_of(manifest, "session_id")},
                 {"created_at", text_of(manifest, "created_at")},
                 {"version", text_of(manifest, "version")},
                 {"workload", value_of(manifest, "workload")},
                 {"options", value_of(manifest, "options")},
                 {"framework", text_of(state, "framework")},
                 {"device_peaks", value_of(state, "device_peaks")},
                 {"phase", text_of(state, "phase")},
                 {"phases", array_of(state, "phase_history")},
                 {"stop_reason", text_of(state, "stop_reason")},
                 {"ledger", ledger_rows(state)},
                 {"kept", kept_entries(state)},
                 {"configuration", kept_configuration(state)},
                 {"decisions", decisions},
                 {"kernels", kernels},
                 {"waiting", waiting_records(state)},
                 {"not_run", array_of(state, "not_run")},
                 {"failures", array_of(state, "last_action_failures")},
                 {"missing_engines", missing()}};
  add_throughput(report, state);
  return report;
}

std::string markdown(const Json& report) {
  std::string text = fmt::format("# Optimization report: {}\n\n{}", text_of(report, "session_id"),
                                 headline(report));
  const std::string reason = text_of(report, "stop_reason");
  if (!reason.empty()) text += fmt::format("\nThe session ended early: {}.\n", reason);
  add_section(text, "Gain ledger", report["ledger"],
              {"seq", "kind", "before", "after", "delta_tput", "integration_id"});
  add_section(text, "Kept", report["kept"],
              {"action", "kernel_id", "kernel_name", "target_file", "gain_pct", "description"});
  if (!report["configuration"].empty()) {
    text += "\n## Configuration kept\n\n";
    for (const auto& [key, value] : report["configuration"].items()) {
      text += fmt::format("- {} = {}\n", key,
                          value.is_string() ? value.get<std::string>() : compact(value));
    }
  }
  add_section(text, "Decisions", report["decisions"], {"seq", "id", "decision", "reason"});
  add_section(text, "Waiting for review", report["waiting"],
              {"integration_id", "kernel_id", "status", "reason"});
  add_section(text, "Kernels", array_of(value_of(report, "kernels"), "by_kernel"),
              {"kernel_id", "name", "gpu_pct", "category", "reason"});
  add_section(text, "Did not run", report["not_run"], {"phase", "step", "reason"});
  add_section(text, "Failures", report["failures"],
              {"ts", "action", "error_class", "error_excerpt"});
  add_section(text, "Not part of this version", report["missing_engines"],
              {"kind", "missing", "needs"});
  return text;
}

std::string config_flags(const Json& report) {
  std::string text;
  for (const auto& [key, value] : value_of(report, "configuration").items()) {
    text += fmt::format("--config={}={}\n", key,
                        value.is_string() ? value.get<std::string>() : compact(value));
  }
  return text;
}

Json kept_workload(const Json& report) {
  Json workload = value_of(report, "workload");
  // What the sources were when the session began.
  workload.erase("original");
  Json& config = workload["config"];
  if (!config.is_object()) config = Json::object();
  config.update(value_of(report, "configuration"));
  return workload;
}

}  // namespace hyperloom::report
