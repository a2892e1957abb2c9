#include "loom/api/reference_run.h"

#include <algorithm>
#include <vector>

#include "loom/api/interpret.h"
#include "loom/api/state.h"

namespace loom::api {

ReferenceOutcome run_reference(const LinkedModule& module, const std::string& root,
                               std::span<const NamedStorage> storage, const Parameters& parameters,
                               uint64_t step_limit, Messages& messages) {
  std::vector<InterpStorage> rows;
  for (const NamedStorage& row : storage) rows.push_back({row.name, row.bytes});
  InterpOptions options;
  options.step_limit = step_limit;
  Diagnostics& diagnostics = messages.state().diagnostics;
  const size_t before = diagnostics.all().size();
  if (interpret_program(module.state().module, root, rows, parameters.state()->set, options,
                        diagnostics)) {
    return ReferenceOutcome::Done;
  }
  const bool limit = std::any_of(diagnostics.all().begin() + static_cast<ptrdiff_t>(before),
                                 diagnostics.all().end(),
                                 [](const Diagnostic& d) { return diag_code(d.id) == "RUN/029"; });
  return limit ? ReferenceOutcome::TooLong : ReferenceOutcome::Failed;
}

}  // namespace loom::api
