// What the rows of an analysis say of the surroundings that their kernels run in.
#pragma once

#include <filesystem>

#include "hyperloom/core/environment.h"
#include "hyperloom/core/json.h"

namespace hyperloom::trace {

// Variables that change what kernels do: those of an allowlist, and none whose name could be that
// of a secret. {name: value}, by name.
Json variables_of_kernels(const Environment& environment);

// Adds to each row `env_vars`, where `best` (state.current_best) lays its own over those of the
// process, `trace_report_path`, and `runtime_args` where a server has any.
void enrich(Json& rows, const Json& best, const Environment& environment,
            const std::filesystem::path& report);

}  // namespace hyperloom::trace
