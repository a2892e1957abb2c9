#include <fmt/format.h>

#include <algorithm>

#include "hyperloom/integrate/patch.h"

namespace hyperloom::integrate {
namespace {

constexpr double kLockSeconds = 10;

Result<TreeLock> lock(const fs::path& root, const std::vector<fs::path>& paths) {
  return TreeLock::acquire(folders_to_lock(root, paths), Deadline::in_seconds(kLockSeconds), {});
}

Result<fs::path> newest_of(const Json& options) {
  const fs::path backup_root = fs::absolute(text_of(options, "backup_root"));
  std::error_code error;
  const fs::path target = fs::weakly_canonical(text_of(options, "target_file"), error);
  std::optional<Manifest> newest;
  for (fs::recursive_directory_iterator at(backup_root, error), end; !error && at != end;
       at.increment(error)) {
    if (at.depth() >= kRegistryDepth) at.disable_recursion_pending();
    if (at->path().filename() != "manifest.json") continue;
    auto manifest = read_manifest(at->path());
    if (!manifest || (manifest->status != "applied" && manifest->status != "reverted_partial" &&
                      !(manifest->status == "prepared" && began_to_change(*manifest)))) {
      continue;
    }
    const bool touches = std::ranges::any_of(
        manifest->rows, [&](const BackupRow& row) { return manifest->root / row.path == target; });
    if (touches && (!newest || newest->sequence < manifest->sequence))
      newest = std::move(*manifest);
  }
  if (newest) return newest->path();
  return fail("manifest_not_found", fmt::format("{}: no applied patch of {} is recorded here",
                                                backup_root.string(), target.string()));
}

}  // namespace

Json patch_apply(const Json& options) {
  const auto request = PatchRequest::read(options);
  if (!request) return failed(request.error());
  const std::string backup_root = text_of(options, "backup_root");
  if (backup_root.empty()) return failed({"invalid_payload", "'backup_root' is missing"});
  auto plan = plan_patch(*request);
  if (!plan) return failed(plan.error());
  if (flag_of(options, "dry_run_patch")) {
    return {{"status", "dry_run"}, {"descriptors", value_of(plan->header, "descriptors")}};
  }
  const auto held = lock(plan->root, plan->paths());
  if (!held) return failed(held.error());
  auto manifest = prepare_patch(*plan, {.root = backup_root});
  if (!manifest) return failed(manifest.error());
  return apply_prepared(*plan, *manifest);
}

Json patch_revert(const Json& options) {
  fs::path path = text_of(options, "manifest_path");
  if (path.empty()) {
    for (const char* needed : {"backup_root", "target_file"}) {
      if (text_of(options, needed).empty()) {
        return failed({"invalid_payload", fmt::format("'{}' is missing", needed)});
      }
    }
    const auto found = newest_of(options);
    if (!found) return failed(found.error());
    path = *found;
  }
  const auto manifest = read_manifest(path);
  if (!manifest) return failed(manifest.error());
  std::vector<fs::path> paths;
  for (const BackupRow& row : manifest->rows) paths.push_back(row.path);
  const auto held = lock(manifest->root, paths);
  if (!held) return failed(held.error());
  return revert_patch(path);
}

}  // namespace hyperloom::integrate
