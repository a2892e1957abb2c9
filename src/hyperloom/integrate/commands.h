// Programs that a patch needs run beside it.
#pragma once

#include <filesystem>
#include <stop_token>

#include "hyperloom/core/time.h"
#include "hyperloom/integrate/manifest.h"
#include "hyperloom/integrate/plan.h"

namespace hyperloom::integrate {

// Runs the plan's rebuild command in its root, where it has one, and notes the outcome in the
// manifest's `rebuild`. Errors: "rebuild_failed" with the end of what it printed, "cancelled".
Result<void> rebuild(const PatchPlan& plan, Manifest& manifest, const Deadline& deadline,
                     const std::stop_token& stop);

// Whether Python can read the file. Errors: "refused_patch", with Python's words or because there
// is no Python to ask.
Result<void> check_python(const fs::path& source);

}  // namespace hyperloom::integrate
