// The A side: the sources as they are without the candidate, in a folder of their own, so that both
// sides can be built again at any time.
#pragma once

#include "hyperloom/integrate/manifest.h"
#include "hyperloom/task/context.h"

namespace hyperloom::integrate {

// Replaces `folder` by a copy of the workload's files. With a manifest, the files that its patch
// has changed are taken from the backups. Errors: "unreadable_file", "unwritable_file".
Result<void> copy_base(const workload::Workload& workload, const Manifest* applied,
                       const fs::path& folder);

}  // namespace hyperloom::integrate
