#include "hyperloom/optimize/run_files.h"
#include "hyperloom/optimize/select.h"

namespace hyperloom::optimize {

Selection select_candidates(const task::Context& context) {
  const std::set<std::string> in_flight = in_flight_ids(context.layout());
  Json state;
  context.state().read([&](const Json& document) { state = document; });
  const std::string path = text_of(value_of(state, "last_trace_analyze"), "candidates_path");
  const auto candidates = read_json(path);
  if (!candidates) {
    Selection selection;
    selection.failure = "candidates_unreadable";
    selection.message = path.empty() ? "no trace was analysed" : candidates.error().message;
    return selection;
  }
  return select_candidates(*candidates, state, context.environment, in_flight);
}

std::vector<std::string> untried_hot_reusable_kernels(const task::Context& context) {
  return select_candidates(context).ids();
}

bool kernel_opt_work_remains(const task::Context& context, bool auto_kernel_opt_enabled) {
  return auto_kernel_opt_enabled && !select_candidates(context).selected.empty();
}

}  // namespace hyperloom::optimize
