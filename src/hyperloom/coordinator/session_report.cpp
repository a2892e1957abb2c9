// The report of a session, from its documents.
#include <algorithm>

#include "hyperloom/coordinator/coordinator.h"
#include "hyperloom/core/durable.h"
#include "hyperloom/optimize/summary.h"
#include "hyperloom/report/report.h"
#include "loom/base/file.h"

namespace hyperloom::coordinator {
namespace {

std::vector<Json> decisions(const session::Layout& layout) {
  std::vector<Json> rows;
  const auto text = loom::read_file(layout.decision_log().string());
  if (!text) return rows;
  for (size_t begin = 0; begin < text->size();) {
    const size_t end = std::min(text->find('\n', begin), text->size());
    // A row that a kill cut short is the last one, and the log writes it again.
    if (auto row = parse_json(std::string_view(*text).substr(begin, end - begin), "decisions")) {
      rows.push_back(std::move(*row));
    }
    begin = end + 1;
  }
  return rows;
}

}  // namespace

Result<Json> write_report(const task::Context& context) {
  Json state;
  context.state().read([&](const Json& current) { state = current; });
  const session::Layout& layout = context.layout();
  Json made = report::build(context.session.manifest(), state, decisions(layout),
                            optimize::session_summary(layout, state, context.environment));
  if (auto folder = make_folder(layout.reports()); !folder) return std::unexpected(folder.error());
  if (auto saved = write_json(layout.reports() / "report.json", made); !saved) {
    return std::unexpected(saved.error());
  }
  if (auto saved = write_durable(layout.reports() / "report.md", report::markdown(made)); !saved) {
    return std::unexpected(saved.error());
  }
  return made;
}

}  // namespace hyperloom::coordinator
