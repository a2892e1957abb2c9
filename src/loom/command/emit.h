// Writes a command product: manifest, artifacts and requests, all of them or none.
#pragma once

#include <string>
#include <utility>

#include "loom/base/file.h"
#include "loom/command/manifest.h"
#include "loom/command/plan.h"
#include "loom/command/prepare.h"

namespace loom {

struct EmitPaths {
  std::string manifest = "-";   // "-" is standard output
  std::string artifact_folder;  // empty: no artifacts
  std::string request_folder;   // empty: no requests
};

// Requests are written as they come and are not kept, so what is held is the largest of them.
// Nothing appears under its name before finish(): without it, or when anything fails, no new file
// is left. Folders are created where they are missing.
class CommandSetOutput {
 public:
  explicit CommandSetOutput(EmitPaths paths) : paths_(std::move(paths)) {}

  FileResult<void> add_request(const KernelRequest& request);
  // What else appears with the product may be staged here.
  OutputSet& outputs() { return outputs_; }
  FileResult<void> finish(const PreparedPlan& plan);

 private:
  EmitPaths paths_;
  OutputSet outputs_;
  ManifestFiles files_;
};

}  // namespace loom
