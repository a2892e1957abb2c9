// The only writer of a source tree: applies a plan, takes it back byte for byte, or makes it final.
//
// Before the first change the originals and a manifest with every hash are on the disk, so that
// whatever ends the process, revert_patch() finds the way back: a file is either what it was or
// what was written, never something between.
//
// Whoever calls holds the tree (TreeLock over folders_to_lock()). No function throws; results are
// {status: ok | partial | failed, error_class?, error?, manifest_path, ...}.
#pragma once

#include <filesystem>
#include <stop_token>
#include <string>
#include <vector>

#include "hyperloom/core/json.h"
#include "hyperloom/core/time.h"
#include "hyperloom/integrate/manifest.h"
#include "hyperloom/integrate/plan.h"

namespace hyperloom::integrate {

struct BackupPlace {
  fs::path root;                   // a folder of its own is claimed in here
  std::vector<fs::path> registry;  // where other manifests of the same tree may lie
};

// Claims the folder, copies the originals and writes the manifest as `prepared`. The tree is not
// touched. Errors: "nothing_changes", "backup_not_claimed", "tree_drift" (not the expected file),
// "unwritable_file", "path_escapes_tree", "unreadable_file".
Result<Manifest> prepare_patch(const PatchPlan& plan, const BackupPlace& place);

// Writes all files of a prepared plan, looks at them again and rebuilds; on any failure everything
// is restored first. Manifest `applied`.
Json apply_prepared(const PatchPlan& plan, Manifest& manifest, const Deadline& deadline = {},
                    const std::stop_token& stop = {});

// Restores what the manifest says was there. Refuses as a whole with "tree_drift" when a file is
// neither what was nor what was written, and with "patch_not_on_top" while a later patch of one of
// its files is in the tree. May be repeated. `partial`: a backup is missing, damaged or outside of
// the manifest's folder.
Json revert_patch(const fs::path& manifest_path);

// The change stays: deletes the backups. From applied and finalized_partial only; `ok` again when
// it was done.
Json finalize_patch(const fs::path& manifest_path);

// `hyperloom patch apply` and `hyperloom patch revert`, with the same refusals, manifest and
// journal as an integration. Options are those of PatchRequest, and `backup_root` (required),
// `dry_run_patch` (status "dry_run": everything is looked at and nothing written). They take the
// tree's lock themselves, waiting up to ten seconds.
Json patch_apply(const Json& options);
// `manifest_path`; or `backup_root` with `target_file`: the newest manifest that changed the file.
Json patch_revert(const Json& options);

// {status: failed, error_class, error, hint?}
Json failed(const Error& error);

}  // namespace hyperloom::integrate
