#include "hyperloom/integrate/patch.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <set>

#include "hyperloom/core/durable.h"
#include "hyperloom/core/fault.h"
#include "hyperloom/integrate/commands.h"
#include "hyperloom/integrate/restore.h"
#include "hyperloom/session/layout.h"
#include "loom/base/hash.h"

namespace hyperloom::integrate {
namespace {

constexpr int kMaxClaims = 200;

// A folder that nobody else has: an existing one is never used again, as it may hold the only copy
// of an original.
Result<fs::path> claim(const PatchPlan& plan, const fs::path& backup_root) {
  if (auto made = make_folder(backup_root); !made) return std::unexpected(made.error());
  const std::string name =
      fmt::format("{}_{}", session::safe_name(text_of(plan.header, "kernel_id", "kernel")),
                  loom::sha256_hex((plan.root / plan.changes.front().path).string()).substr(0, 12));
  for (int i = 1; i <= kMaxClaims; ++i) {
    fs::path folder = backup_root / (i == 1 ? name : fmt::format("{}-{}", name, i));
    fault_point("patch_claim");
    if (::mkdir(folder.c_str(), 0755) == 0) {
      if (auto synced = sync_folder(backup_root); !synced) return std::unexpected(synced.error());
      return folder;
    }
    if (errno != EEXIST) {
      return fail("unwritable_file", fmt::format("{}: {}", folder.string(), std::strerror(errno)));
    }
  }
  return fail(
      "backup_not_claimed",
      fmt::format("{}: {} folders of this kernel are there", backup_root.string(), kMaxClaims),
      "revert or remove the old ones");
}

struct Sides {
  std::vector<BackupRow> rows;
  std::vector<std::string> originals;  // by row
  std::vector<fs::path> created_folders;
};

Result<Sides> look(const PatchPlan& plan, const TreeFiles& files) {
  Sides sides;
  std::set<fs::path> folders;
  bool changes = false;
  for (const FileChange& change : plan.changes) {
    auto there = files.read(change.path);
    if (!there) return std::unexpected(there.error());
    BackupRow row{.path = change.path};
    if (*there) row.before = {(*there)->hash, (*there)->mode};
    if (!change.remove) {
      const unsigned mode = row.before.there() ? row.before.mode : 0644;
      row.after = {loom::sha256_hex(change.content), change.mode.value_or(mode)};
    }
    changes |= row.before.hash != row.after.hash || row.before.mode != row.after.mode;
    auto missing = files.missing_folders(change.path);
    if (!missing) return std::unexpected(missing.error());
    if (!change.remove) folders.insert(missing->begin(), missing->end());
    sides.rows.push_back(std::move(row));
    sides.originals.push_back(*there ? std::move((*there)->content) : "");
  }
  if (!changes) {
    return fail("nothing_changes", plan.root.string() + ": the tree has these contents already");
  }
  // A parent sorts in front of what it holds.
  sides.created_folders.assign(folders.begin(), folders.end());
  return sides;
}

std::string octal(unsigned mode) { return fmt::format("{:04o}", mode); }

Json row_document(const BackupRow& row, const fs::path& root) {
  const char* disposition = !row.before.there()  ? "added"
                            : !row.after.there() ? "deleted"
                                                 : "modified";
  return {{"path", (root / row.path).string()},
          {"backup_path", row.backup_path.empty() ? Json() : Json(row.backup_path.string())},
          {"disposition", disposition},
          {"before_hash", row.before.hash},
          {"after_hash", row.after.hash},
          {"before_mode", octal(row.before.mode)},
          {"after_mode", octal(row.after.mode)}};
}

Json new_document(const PatchPlan& plan, const Sides& sides, const BackupPlace& place) {
  Json document = plan.header;
  document["schema_version"] = 1;
  document["status"] = "prepared";
  document["root"] = plan.root.string();
  document["created_at"] = utc_now();
  document["source_backups"] = Json::array();
  for (const BackupRow& row : sides.rows) {
    document["source_backups"].push_back(row_document(row, plan.root));
  }
  const Json& first = document["source_backups"][0];
  document["source_backup"] = {{"path", first["path"]}, {"backup_path", first["backup_path"]}};
  document["created_folders"] = Json::array();
  for (const fs::path& folder : sides.created_folders) {
    document["created_folders"].push_back(folder.string());
  }
  document["registry"] = Json::array();
  for (const fs::path& folder : place.registry) document["registry"].push_back(folder.string());
  document["artifacts"] = Json::array();
  document["strategy"] = {{"compiled", !plan.rebuild.empty()},
                          {"root", plan.root.string()},
                          {"deploy_roots", Json::array()},
                          {"rebuild_modes", plan.rebuild.empty() ? Json::array() : Json{"command"}},
                          {"jit_build_dirs", Json::array()}};
  document["rebuild"] = {{"command", plan.rebuild}, {"status", "not_run"}};
  document["cache_clear"] = Json::array();
  for (const char* absent : {"jit_build_backup", "cpp_itfs_cache_backup", "multinode"}) {
    document[absent] = nullptr;
  }
  return document;
}

Result<void> write_backups(Sides& sides, const fs::path& folder) {
  for (size_t i = 0; i < sides.rows.size(); ++i) {
    BackupRow& row = sides.rows[i];
    if (!row.before.there()) continue;
    row.backup_path =
        folder / fmt::format("{:04}_{}", i, session::safe_name(row.path.filename().string()));
    fault_point("patch_backup");
    if (auto done = write_durable(row.backup_path, sides.originals[i]); !done) return done;
  }
  return {};
}

Result<void> write_files(const PatchPlan& plan, const Manifest& manifest, const TreeFiles& files) {
  for (const fs::path& folder : manifest.created_folders) {
    if (auto done = files.make_folder(folder); !done) return done;
  }
  for (size_t i = 0; i < plan.changes.size(); ++i) {
    const FileChange& change = plan.changes[i];
    const BackupRow& row = manifest.rows[i];
    // Between the look and this moment only a hand that does not take the lock can have moved it.
    const auto there = files.read(change.path);
    if (!there) return std::unexpected(there.error());
    if ((*there ? (*there)->hash : "") != row.before.hash) {
      return fail("tree_drift", (plan.root / change.path).string() + ": changed meanwhile");
    }
    if (auto noted = note(manifest, "file", change.path); !noted) return noted;
    auto done = change.remove ? files.remove(change.path)
                              : files.write(change.path, change.content, row.after.mode);
    if (!done) return done;
  }
  for (const BackupRow& row : manifest.rows) {
    const auto there = files.read(row.path);
    if (!there) return std::unexpected(there.error());
    if ((*there ? (*there)->hash : "") != row.after.hash) {
      return fail("unwritable_file",
                  (plan.root / row.path).string() + ": is not what was written to it");
    }
  }
  return {};
}

Json result_of(const Manifest& manifest, const char* status) {
  Json changed = Json::array();
  for (const BackupRow& row : manifest.rows) changed.push_back((manifest.root / row.path).string());
  return {{"status", status},
          {"manifest_path", manifest.path().string()},
          {"mode", text_of(manifest.document, "mode")},
          {"target_file", text_of(manifest.document, "target_file")},
          {"changed_files", std::move(changed)},
          {"rebuild", value_of(manifest.document, "rebuild")}};
}

}  // namespace

Json failed(const Error& error) {
  Json result = {
      {"status", "failed"}, {"error_class", error.error_class}, {"error", error.message}};
  if (!error.hint.empty()) result["hint"] = error.hint;
  return result;
}

Result<Manifest> prepare_patch(const PatchPlan& plan, const BackupPlace& place) {
  const auto files = TreeFiles::open(plan.root);
  if (!files) return std::unexpected(files.error());
  auto sides = look(plan, *files);
  if (!sides) return std::unexpected(sides.error());
  uint64_t sequence = 1;
  std::vector<fs::path> registry = place.registry;
  registry.push_back(place.root);
  for (const Manifest& other : active_manifests(registry, plan.root)) {
    sequence = std::max(sequence, other.sequence + 1);
  }
  const auto folder = claim(plan, fs::absolute(place.root));
  if (!folder) return std::unexpected(folder.error());
  if (auto done = write_backups(*sides, *folder); !done) return std::unexpected(done.error());
  BackupPlace absolute{.root = place.root};
  for (const fs::path& each : registry) absolute.registry.push_back(fs::absolute(each));
  Json document = new_document(plan, *sides, absolute);
  document["sequence"] = sequence;
  auto manifest = check_manifest(std::move(document), *folder);
  if (!manifest) return manifest;
  if (auto saved = save_manifest(*manifest); !saved) return std::unexpected(saved.error());
  return manifest;
}

Json apply_prepared(const PatchPlan& plan, Manifest& manifest, const Deadline& deadline,
                    const std::stop_token& stop) {
  const auto files = TreeFiles::open(plan.root);
  if (!files) return failed(files.error());
  Result<void> done = note(manifest, "changing");
  if (done) done = write_files(plan, manifest, *files);
  if (done) done = rebuild(plan, manifest, deadline, stop);
  if (done) {
    manifest.status = "applied";
    manifest.document["applied_at"] = utc_now();
    done = save_manifest(manifest);
  }
  if (done) return result_of(manifest, "ok");
  manifest.status = "prepared";
  Json result = failed(done.error());
  result["manifest_path"] = manifest.path().string();
  result["restore"] = restore(manifest);
  return result;
}

Json revert_patch(const fs::path& manifest_path) {
  auto manifest = read_manifest(manifest_path);
  if (!manifest) return failed(manifest.error());
  if (manifest->status == "reverted") return result_of(*manifest, "ok");
  if (manifest->status.starts_with("finalized")) {
    return failed({"patch_finalized", manifest->path().string() + ": its backups are deleted"});
  }
  std::vector<fs::path> registry;
  for (const Json& folder : value_of(manifest->document, "registry")) {
    if (folder.is_string()) registry.emplace_back(folder.get<std::string>());
  }
  for (const Manifest& other : active_manifests(registry, manifest->root)) {
    if (other.sequence <= manifest->sequence) continue;
    for (const BackupRow& row : manifest->rows) {
      if (std::ranges::find(other.rows, row.path, &BackupRow::path) == other.rows.end()) continue;
      return failed({"patch_not_on_top",
                     fmt::format("{}: {} changed it later", (manifest->root / row.path).string(),
                                 other.path().string()),
                     "revert that one first"});
    }
  }
  return restore(*manifest);
}

Json finalize_patch(const fs::path& manifest_path) {
  auto manifest = read_manifest(manifest_path);
  if (!manifest) return failed(manifest.error());
  if (manifest->status == "finalized") return result_of(*manifest, "ok");
  if (manifest->status != "applied" && manifest->status != "finalized_partial") {
    return failed(
        {"not_applied", fmt::format("{}: is {}", manifest->path().string(), manifest->status)});
  }
  Json deleted = Json::array();
  Json issues = Json::array();
  for (const std::string& path : manifest->untrusted) {
    issues.push_back(path + ": outside of the manifest's folder");
  }
  for (const BackupRow& row : manifest->rows) {
    if (row.backup_path.empty()) continue;
    std::error_code error;
    fault_point("patch_finalize");
    fs::remove(row.backup_path, error);
    if (error) {
      issues.push_back(row.backup_path.string() + ": " + error.message());
    } else {
      deleted.push_back(row.backup_path.string());
    }
  }
  const bool whole = issues.empty();
  manifest->status = whole ? "finalized" : "finalized_partial";
  manifest->document["finalized_at"] = utc_now();
  manifest->document["finalize_deleted"] = deleted;
  manifest->document["finalize_issues"] = issues;
  if (auto saved = save_manifest(*manifest); !saved) return failed(saved.error());
  Json result = result_of(*manifest, whole ? "ok" : "partial");
  result["finalize_issues"] = issues;
  return result;
}

}  // namespace hyperloom::integrate
