// status, report and the errors: what looks at a session without running it.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "hyperloom/app/commands.h"
#include "hyperloom/app/opened.h"
#include "hyperloom/lane/engines.h"
#include "hyperloom/report/report.h"
#include "loom/base/file.h"

namespace hyperloom::app {
namespace {

void print(const std::string& text) { std::fwrite(text.data(), 1, text.size(), stdout); }

// What is missing on this machine, rather than wrong in the input.
bool is_environment(const std::string& error_class) {
  static constexpr const char* kClasses[] = {"missing_compiler", "kernel_agent_root_missing",
                                             "not_available", "resource_missing"};
  return std::ranges::any_of(kClasses, [&](const char* one) { return error_class == one; });
}

Json status_document(const session::Session::View& view) {
  Json missing = Json::array();
  for (const lane::MissingEngine& engine : lane::missing_engines()) {
    missing.push_back({{"kind", engine.kind}, {"missing", engine.what}, {"needs", engine.needs}});
  }
  const Json report = report::build(view.manifest, view.state, {}, nullptr);
  Json document = {{"session_id", value_of(view.manifest, "session_id")},
                   {"running", view.running},
                   {"owner", view.owner},
                   {"phase", value_of(view.state, "phase")},
                   {"outcome", report["outcome"]},
                   {"kept", report["kept"].size()},
                   {"waiting", report["waiting"]},
                   {"not_run", report["not_run"]},
                   {"stop_reason", report["stop_reason"]},
                   {"not_available", std::move(missing)}};
  for (const char* field : {"baseline_tput", "final_tput", "gain_pct", "unit"}) {
    if (report.contains(field)) document[field] = report[field];
  }
  return document;
}

}  // namespace

int report_error(const Error& error, const Voice& voice) {
  if (voice.json) {
    const Json row = {
        {"error_class", error.error_class}, {"message", error.message}, {"hint", error.hint}};
    fmt::print(stderr, "{}\n", compact(row));
  } else {
    fmt::print(stderr, "hyperloom: error[{}]: {}\n", error.error_class, error.message);
    if (!error.hint.empty()) fmt::print(stderr, "  help: {}\n", error.hint);
  }
  return is_environment(error.error_class) ? 3 : 1;
}

int status(const Environment& environment, const std::string& session_id, const Voice& voice) {
  const auto layout = find_session(environment, session_id);
  if (!layout) return report_error(layout.error(), voice);
  const auto view = session::Session::look(*layout);
  if (!view) return report_error(view.error(), voice);
  const Json document = status_document(*view);
  if (voice.json) {
    print(document.dump() + "\n");
    return 0;
  }
  fmt::print("Session {}: {}, phase {}\n", text_of(document, "session_id"),
             view->running ? fmt::format("running (pid {})", compact(value_of(view->owner, "pid")))
                           : "not running",
             text_of(document, "phase"));
  if (document.contains("baseline_tput")) {
    fmt::print("  {} -> {} {} ({:+.2f} %), {} kept\n", text_of(document, "baseline_tput"),
               text_of(document, "final_tput"), text_of(document, "unit"),
               number_of(document, "gain_pct"), document["kept"].get<size_t>());
  } else {
    fmt::print("  nothing is measured yet\n");
  }
  if (!text_of(document, "stop_reason").empty()) {
    fmt::print("  ended early: {}\n", text_of(document, "stop_reason"));
  }
  for (const Json& row : document["not_run"]) {
    fmt::print("  did not run: {} in {} ({})\n", text_of(row, "step"), text_of(row, "phase"),
               text_of(row, "reason"));
  }
  for (const Json& row : document["not_available"]) {
    fmt::print("  not available: {} ({})\n", text_of(row, "kind"), text_of(row, "missing"));
  }
  return 0;
}

int show_report(const Environment& environment, const std::string& session_id,
                const std::string& format, const std::string& output, const Voice& voice) {
  const auto layout = find_session(environment, session_id);
  if (!layout) return report_error(layout.error(), voice);
  const auto report = read_json(layout->reports() / "report.json");
  if (!report) {
    return report_error({"no_report", fmt::format("session '{}' has no report yet", layout->id),
                         "a report is written when a session ends; 'hyperloom resume' goes on"},
                        voice);
  }
  std::string text = report::markdown(*report);
  if (format == "json") text = report->dump(2) + "\n";
  if (format == "flags") text = report::config_flags(*report);
  if (format == "workload") text = report::kept_workload(*report).dump(2) + "\n";
  if (auto written = loom::write_file(output.empty() ? "-" : output, text); !written) {
    return report_error(
        {"unwritable_file", fmt::format("{}: {}", output, written.error().reason), ""}, voice);
  }
  return 0;
}

}  // namespace hyperloom::app
