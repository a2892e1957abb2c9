// A candidate as files: what integrate applies.
#pragma once

#include <filesystem>
#include <string>

#include "hyperloom/core/error.h"
#include "hyperloom/core/json.h"
#include "hyperloom/optimize/tree_copy.h"

namespace hyperloom::optimize {

// Writes below `folder`: snapshot/<path> of every changed file, best.patch (a unified diff against
// `tree`) and manifest.json (`manifest` with the words of the change). The result is the bundle
// {type: patch_snapshot, producer, producer_manifest, snapshot_dir, patch_path, repo_root,
// descriptors, write_paths, delete_paths}. A change of configuration alone has no files; then it is
// null. Errors: "unreadable_file", "unwritable_file", "path_escapes_tree".
Result<Json> write_bundle(const std::filesystem::path& folder, const std::filesystem::path& tree,
                          const Change& change, const std::string& producer, Json manifest);

// Reads the files of a bundle back. Errors: "unreadable_file", "path_escapes_tree",
// "invalid_bundle".
Result<Change> read_bundle(const Json& bundle);

// Whether a file may be a source artifact by its name: logs and prose never are.
bool may_be_source(const std::filesystem::path& path);

}  // namespace hyperloom::optimize
