// optimize, resume and request: what runs a session.
#include <fmt/format.h>

#include <cstdio>
#include <fstream>

#include "hyperloom/agent/orchestrator.h"
#include "hyperloom/app/commands.h"
#include "hyperloom/app/opened.h"
#include "hyperloom/app/progress_line.h"
#include "hyperloom/app/stop_signals.h"
#include "hyperloom/coordinator/coordinator.h"
#include "hyperloom/coordinator/phase.h"
#include "hyperloom/lane/gates.h"
#include "hyperloom/report/report.h"
#include "loom/base/file.h"

namespace hyperloom::app {
namespace {

void print(const std::string& text) { std::fwrite(text.data(), 1, text.size(), stdout); }

Result<std::vector<std::unique_ptr<agent::Orchestrator>>> orchestrators(
    const coordinator::Options& options) {
  if (!options.transcript.empty()) return agent::replayed(options.transcript);
  std::vector<std::unique_ptr<agent::Orchestrator>> roles;
  roles.push_back(agent::scripted(options.kernel));
  return roles;
}

Result<void> copy_report(const Json& report, const std::string& file) {
  if (file.empty()) return {};
  const bool as_json = file.ends_with(".json");
  const std::string text = as_json ? report.dump(2) + "\n" : report::markdown(report);
  if (auto written = loom::write_file(file, text); !written) {
    return fail("unwritable_file", fmt::format("{}: {}", file, written.error().reason));
  }
  return {};
}

// Runs an opened session to its end, or until a signal.
int run_session(Opened& opened, const std::string& report_file, const Voice& voice) {
  const StopSignals signals;
  ProgressLine line(voice.progress);
  const task::Context context =
      opened.context(signals.token(), [&](const task::Progress& progress) { line.show(progress); });
  auto roles = orchestrators(opened.options());
  if (!roles) return report_error(roles.error(), voice);
  coordinator::Coordinator coordinator(context, opened.tasks(), opened.options(),
                                       std::move(*roles));
  const auto ended = coordinator.run();
  line.clear();
  if (!ended) return report_error(ended.error(), voice);
  const auto report = read_json(context.layout().reports() / "report.json");
  if (!report) return report_error(report.error(), voice);
  if (auto copied = copy_report(*report, report_file); !copied) {
    return report_error(copied.error(), voice);
  }
  print(voice.json ? report->dump() + "\n" : report::markdown(*report));
  if (!voice.json) {
    fmt::print("\nSession {}: {}\n", context.layout().id,
               (context.layout().reports() / "report.md").string());
  }
  if (!ended->measured) {
    return report_error(
        {"nothing_measured",
         ended->stop_reason.empty() ? "nothing was measured" : ended->stop_reason, ""},
        voice);
  }
  return 0;
}

int dry_run(const Environment& environment, const workload::Workload& workload,
            const OptimizeRequest& request, const Voice& voice) {
  Json phases = Json::array();
  for (const coordinator::PhaseRow& row : coordinator::phases()) {
    if (!row.native) continue;
    phases.push_back({{"phase", row.name},
                      {"seconds", coordinator::budget_share(row.phase, true, 0) *
                                      request.options.budget_seconds}});
  }
  Json files = Json::array();
  for (const auto& file : workload.files()) files.push_back(file.string());
  const Json plan = {{"workload", workload.name()},
                     {"tree", workload.tree().string()},
                     {"files", files},
                     {"device", workload.device()},
                     {"data_root", session::data_root(environment).string()},
                     {"backend", lane::forge_selected(environment) ? "forge" : "geak"},
                     {"phases", phases},
                     {"options", coordinator::to_json(request.options)}};
  if (voice.json) {
    print(plan.dump() + "\n");
    return 0;
  }
  fmt::print("Would optimize {} on {} with {}; nothing was written.\n", workload.name(),
             workload.device(), text_of(plan, "backend"));
  fmt::print("  sources: {} ({} files)\n  data root: {}\n", workload.tree().string(), files.size(),
             text_of(plan, "data_root"));
  for (const Json& phase : phases) {
    fmt::print("  {:<13} {:>8.1f} s\n", text_of(phase, "phase"), number_of(phase, "seconds"));
  }
  return 0;
}

}  // namespace

int optimize(const Environment& environment, const OptimizeRequest& request, const Voice& voice) {
  auto workload = workload::open_workload(request.workload);
  if (!workload) return report_error(workload.error(), voice);
  if (request.dry_run) return dry_run(environment, **workload, request, voice);
  const auto root = session::data_root(environment);
  const std::string id = request.session_id.empty() ? new_session_id(root) : request.session_id;
  const auto layout = session::Layout::make(root, id);
  if (!layout) return report_error(layout.error(), voice);
  auto opened = Opened::create(environment, *layout, std::move(*workload), request.options);
  if (!opened) return report_error(opened.error(), voice);
  return run_session(**opened, request.report, voice);
}

int resume(const Environment& environment, const std::string& session_id, const std::string& report,
           const Voice& voice) {
  const auto layout = find_session(environment, session_id);
  if (!layout) return report_error(layout.error(), voice);
  auto opened = Opened::resume(environment, *layout);
  if (!opened) return report_error(opened.error(), voice);
  return run_session(**opened, report, voice);
}

int request(const Environment& environment, const std::string& session_id, const std::string& kind,
            const Json& params, const Voice& voice) {
  const auto layout = find_session(environment, session_id);
  if (!layout) return report_error(layout.error(), voice);
  auto opened = Opened::resume(environment, *layout);
  if (!opened) return report_error(opened.error(), voice);
  const StopSignals signals;
  ProgressLine line(voice.progress);
  const task::Context context = (*opened)->context(
      signals.token(), [&](const task::Progress& progress) { line.show(progress); });
  auto roles = orchestrators((*opened)->options());
  if (!roles) return report_error(roles.error(), voice);
  coordinator::Coordinator coordinator(context, (*opened)->tasks(), (*opened)->options(),
                                       std::move(*roles));
  const auto answer = coordinator.request(kind, params);
  line.clear();
  if (!answer) return report_error(answer.error(), voice);
  print(answer->dump(voice.json ? -1 : 2, ' ', false, Json::error_handler_t::replace) + "\n");
  const std::string status = text_of(*answer, "status");
  return status == "failed" || status == "denied" || status == "error" ? 1 : 0;
}

}  // namespace hyperloom::app
