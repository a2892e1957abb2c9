// patch export, undo, apply and revert.
#include <fmt/format.h>

#include <cstdio>

#include "hyperloom/app/commands.h"
#include "hyperloom/app/opened.h"
#include "hyperloom/integrate/kept.h"
#include "hyperloom/integrate/patch.h"
#include "loom/base/file.h"

namespace hyperloom::app {
namespace {

int print_result(const Json& result, const Voice& voice) {
  const std::string text =
      result.dump(voice.json ? -1 : 2, ' ', false, Json::error_handler_t::replace) + "\n";
  std::fwrite(text.data(), 1, text.size(), stdout);
  const std::string status = text_of(result, "status");
  return status == "ok" || status == "skipped" || status == "dry_run" ? 0 : 1;
}

void note(const std::string& message, const std::string& hint, const Voice& voice) {
  if (voice.json) {
    fmt::print(stderr, "{}\n", compact(Json{{"note", message}, {"hint", hint}}));
    return;
  }
  fmt::print(stderr, "hyperloom: note: {}\n", message);
  if (!hint.empty()) fmt::print(stderr, "  help: {}\n", hint);
}

}  // namespace

int patch_export(const Environment& environment, const std::string& session_id,
                 const std::string& output, const Voice& voice) {
  const auto layout = find_session(environment, session_id);
  if (!layout) return report_error(layout.error(), voice);
  const auto view = session::Session::look(*layout);
  if (!view) return report_error(view.error(), voice);
  const auto workload = workload::open_workload(value_of(view->manifest, "workload"));
  if (!workload) return report_error(workload.error(), voice);
  const auto patch = integrate::export_patch(*layout, view->state, (*workload)->tree());
  if (!patch) return report_error(patch.error(), voice);
  if (auto written = loom::write_file(output, *patch); !written) {
    return report_error(
        {"unwritable_file", fmt::format("{}: {}", output, written.error().reason), ""}, voice);
  }
  const Json& best = value_of(view->state, "current_best");
  if (!value_of(best, "extra_envs").empty()) {
    note(
        "configuration was kept, which a patch of sources does not hold",
        "'hyperloom report --format=flags' has it as flags, '--format=workload' as a workload file",
        voice);
  } else if (patch->empty()) {
    note("nothing was kept, so that the patch is empty", "", voice);
  }
  return 0;
}

int patch_undo(const Environment& environment, const std::string& session_id, const Voice& voice) {
  const auto layout = find_session(environment, session_id);
  if (!layout) return report_error(layout.error(), voice);
  auto session = session::Session::resume(*layout);
  if (!session) return report_error(session.error(), voice);
  const auto workload = workload::open_workload(value_of(session->manifest(), "workload"));
  if (!workload) return report_error(workload.error(), voice);
  return print_result(integrate::undo_kept(*session, (*workload)->tree()), voice);
}

int patch_apply(const Json& options, const Voice& voice) {
  return print_result(integrate::patch_apply(options), voice);
}

int patch_revert(const Json& options, const Voice& voice) {
  return print_result(integrate::patch_revert(options), voice);
}

}  // namespace hyperloom::app
