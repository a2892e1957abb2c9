#include "loom/command/emit.h"

#include <fmt/format.h>

#include <filesystem>

#include "loom/base/hash.h"
#include "loom/command/artifact.h"

namespace loom {
namespace {

FileResult<void> add(OutputSet& outputs, const std::string& folder, const std::string& name,
                     const std::string& bytes, std::vector<ManifestFiles::File>& listed) {
  listed.push_back({name, sha256_hex(bytes)});
  return outputs.add((std::filesystem::path(folder) / name).string(), bytes);
}

}  // namespace

FileResult<void> CommandSetOutput::add_request(const KernelRequest& request) {
  if (files_.requests.empty()) {
    if (auto made = outputs_.add_folder(paths_.request_folder); !made) return made;
  }
  return add(outputs_, paths_.request_folder, fmt::format("kernel-{}.loombc", request.ordinal),
             request.bytecode, files_.requests);
}

FileResult<void> CommandSetOutput::finish(const PreparedPlan& plan) {
  if (!paths_.request_folder.empty()) {
    if (auto made = outputs_.add_folder(paths_.request_folder); !made) return made;
  }
  if (!paths_.artifact_folder.empty()) {
    if (auto made = outputs_.add_folder(paths_.artifact_folder); !made) return made;
    for (const PreparedProgram& program : plan.programs) {
      auto added = add(outputs_, paths_.artifact_folder, artifact_file_name(program.symbol),
                       write_artifact({plan, program}), files_.artifacts);
      if (!added) return added;
    }
  }
  const std::string manifest = manifest_json(plan, files_);
  if (auto added = outputs_.add(paths_.manifest, manifest); !added) return added;
  return outputs_.commit();
}

}  // namespace loom
