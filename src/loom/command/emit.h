// Writes a command product: manifest, artifacts and requests, all of them or none.
#pragma once

#include <string>
#include <vector>

#include "loom/base/file.h"
#include "loom/command/plan.h"
#include "loom/command/prepare.h"

namespace loom {

struct EmitPaths {
  std::string manifest = "-";   // "-" is standard output
  std::string artifact_folder;  // empty: no artifacts
  std::string request_folder;   // empty: no requests
};

// Folders are created where they are missing. On failure no new file is left.
FileResult<void> emit_command_set(const PreparedPlan& plan,
                                  const std::vector<KernelRequest>& requests,
                                  const EmitPaths& paths);

}  // namespace loom
