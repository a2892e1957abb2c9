#include "hyperloom/integrate/restore.h"

#include <ranges>

#include "hyperloom/core/time.h"
#include "hyperloom/integrate/patch.h"
#include "hyperloom/integrate/tree_files.h"
#include "loom/base/file.h"
#include "loom/base/hash.h"

namespace hyperloom::integrate {
namespace {

// Nothing is touched before all files are known to be ours.
std::optional<Error> drift(const Manifest& manifest, const TreeFiles& files) {
  for (const BackupRow& row : manifest.rows) {
    const auto there = files.read(row.path);
    if (!there) return there.error();
    const std::string hash = *there ? (*there)->hash : "";
    if (hash == row.before.hash || hash == row.after.hash) continue;
    return Error{"tree_drift",
                 (manifest.root / row.path).string() + ": changed since the patch was applied",
                 "save that change, then restore the file from " + row.backup_path.string()};
  }
  return std::nullopt;
}

Result<std::string> read_backup(const BackupRow& row) {
  auto content = loom::read_file(row.backup_path.string());
  if (!content) {
    return fail("unreadable_file", row.backup_path.string() + ": " + content.error().reason);
  }
  if (loom::sha256_hex(*content) != row.before.hash) {
    return fail("damaged_backup", row.backup_path.string() + ": is not what was saved in it");
  }
  return std::move(*content);
}

// Whether the file was changed back; false when it was as before.
Result<bool> restore_file(const BackupRow& row, const Manifest& manifest, const TreeFiles& files) {
  const auto missing = files.missing_folders(row.path);
  if (!missing) return std::unexpected(missing.error());
  if (missing->empty()) files.remove_leftover(row.path);
  const auto there = files.read(row.path);
  if (!there) return std::unexpected(there.error());
  const bool same = *there ? (*there)->hash == row.before.hash && (*there)->mode == row.before.mode
                           : !row.before.there();
  if (same) return false;
  // The hashes say what is to be done; a disk that takes no more lines must not hinder the way
  // back.
  (void)note(manifest, "restore", row.path);
  if (!row.before.there()) {
    if (auto done = files.remove(row.path); !done) return std::unexpected(done.error());
    return true;
  }
  const auto content = read_backup(row);
  if (!content) return std::unexpected(content.error());
  if (auto done = files.write(row.path, *content, row.before.mode); !done) {
    return std::unexpected(done.error());
  }
  return true;
}

}  // namespace

Json restore(Manifest& manifest) {
  const auto files = TreeFiles::open(manifest.root);
  if (!files) return failed(files.error());
  if (const auto drifted = drift(manifest, *files)) {
    Json result = failed(*drifted);
    result["manifest_path"] = manifest.path().string();
    return result;
  }
  Json restored = Json::array();
  Json issues = Json::array();
  for (const BackupRow& row : std::views::reverse(manifest.rows)) {
    const auto done = restore_file(row, manifest, *files);
    if (!done) {
      issues.push_back(done.error().message);
    } else if (*done) {
      restored.push_back((manifest.root / row.path).string());
    }
  }
  for (const fs::path& folder : std::views::reverse(manifest.created_folders)) {
    // What others have put into it meanwhile is theirs, and keeps it.
    const auto gone = files->remove_folder(folder);
    if (!gone) issues.push_back(gone.error().message);
  }
  const bool whole = issues.empty() && manifest.untrusted.empty();
  manifest.status = whole ? "reverted" : "reverted_partial";
  Json& document = manifest.document;
  document["reverted_at"] = utc_now();
  document["restored_paths"] = restored;
  document["skipped_untrusted_backups"] = manifest.untrusted;
  document["revert_issues"] = issues;
  document["multinode_revert"] = nullptr;
  if (auto saved = save_manifest(manifest); !saved) return failed(saved.error());
  return {{"status", whole ? "ok" : "partial"},
          {"manifest_path", manifest.path().string()},
          {"restored_paths", std::move(restored)},
          {"skipped_untrusted_backups", manifest.untrusted},
          {"revert_issues", std::move(issues)}};
}

}  // namespace hyperloom::integrate
