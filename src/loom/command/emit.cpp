#include "loom/command/emit.h"

#include <fmt/format.h>

#include <filesystem>

#include "loom/base/hash.h"
#include "loom/command/artifact.h"
#include "loom/command/manifest.h"

namespace loom {
namespace {

FileResult<void> add(OutputSet& outputs, const std::string& folder, const std::string& name,
                     const std::string& bytes, std::vector<ManifestFiles::File>& listed) {
  listed.push_back({name, sha256_hex(bytes)});
  return outputs.add((std::filesystem::path(folder) / name).string(), bytes);
}

FileResult<void> add_all(OutputSet& outputs, const PreparedPlan& plan,
                         const std::vector<KernelRequest>& requests, const EmitPaths& paths,
                         ManifestFiles& files) {
  if (!paths.artifact_folder.empty()) {
    if (auto made = outputs.add_folder(paths.artifact_folder); !made) return made;
    for (const PreparedProgram& program : plan.programs) {
      auto added = add(outputs, paths.artifact_folder, artifact_file_name(program.symbol),
                       write_artifact(plan, program), files.artifacts);
      if (!added) return added;
    }
  }
  if (!paths.request_folder.empty()) {
    if (auto made = outputs.add_folder(paths.request_folder); !made) return made;
    for (const KernelRequest& request : requests) {
      auto added =
          add(outputs, paths.request_folder, fmt::format("kernel-{}.loombc", request.ordinal),
              request.bytecode, files.requests);
      if (!added) return added;
    }
  }
  return {};
}

}  // namespace

FileResult<void> emit_command_set(const PreparedPlan& plan,
                                  const std::vector<KernelRequest>& requests,
                                  const EmitPaths& paths) {
  OutputSet outputs;
  ManifestFiles files;
  if (auto added = add_all(outputs, plan, requests, paths, files); !added) return added;
  const std::string manifest = manifest_json(plan, files);
  if (auto added = outputs.add(paths.manifest, manifest); !added) return added;
  return outputs.commit();
}

}  // namespace loom
