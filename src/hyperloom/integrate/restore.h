// The way back from a manifest, whatever state the files are in.
#pragma once

#include "hyperloom/core/json.h"
#include "hyperloom/integrate/manifest.h"

namespace hyperloom::integrate {

// The part of revert_patch() after the manifest may be reverted: result and manifest as described
// there, with restored_paths, skipped_untrusted_backups and revert_issues.
Json restore(Manifest& manifest);

}  // namespace hyperloom::integrate
