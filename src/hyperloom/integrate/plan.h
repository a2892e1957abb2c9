// What a candidate wants to do to a tree, read and refused where it must be before anything is
// touched.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "hyperloom/core/json.h"
#include "hyperloom/integrate/tree_files.h"

namespace hyperloom::integrate {

struct FileChange {
  fs::path path;  // relative to the root
  bool remove = false;
  std::string content;
  std::optional<unsigned> mode;  // of the new file; empty: as it was, 0644 for one that is added
};

// One request to apply: a complete replacement of `target_file`, or, with `snapshot_dir`, the files
// that the unified diff at `patch_path` names, with their contents from the snapshot.
struct PatchRequest {
  std::string kernel_id;
  fs::path patch_path;
  fs::path target_file;
  fs::path snapshot_dir;
  fs::path repo;  // root of a snapshot's paths
  fs::path producer_manifest;
  std::vector<fs::path> known_roots;  // trees that may be written
  bool allow_unknown_target = false;
  std::string rebuild_command;  // split at blanks, run without a shell
  double rebuild_timeout_sec = 1800;
  bool skip_rebuild = false;

  // From the fields of a request or of the command line; paths that are not absolute are taken from
  // the current folder. Errors: "invalid_payload" naming the field.
  static Result<PatchRequest> read(const Json& options);
};

struct PatchPlan {
  fs::path root;  // of the tree that is written, resolved
  std::vector<FileChange> changes;
  // kernel_id, patch_path, target_file, mode, descriptors, producer_manifest: goes into the
  // manifest as it is.
  Json header = Json::object();
  std::vector<std::string> rebuild;  // the command's words
  double rebuild_timeout_sec = 1800;

  std::vector<fs::path> paths() const;
};

// Errors: "missing_integration_inputs", "refused_patch" (with what is wrong and what would do),
// "path_escapes_tree", "invalid_diff", "invalid_rebuild_command", "unreadable_file".
Result<PatchPlan> plan_patch(const PatchRequest& request);
// Several as one, applied and undone together. They must have one root and distinct files. Errors:
// "refused_patch".
Result<PatchPlan> merge_plans(std::vector<PatchPlan> plans);

// sha256 over what the plan writes: the part of the recording key that stands for the patch.
std::string content_hash(const PatchPlan& plan);

}  // namespace hyperloom::integrate
