// The record of one application of a patch: what was there, what is there since, how far it came.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hyperloom/core/json.h"

namespace hyperloom::integrate {

namespace fs = std::filesystem;

// A file on one side of the change.
struct FileMark {
  std::string hash;  // sha256; empty: there is no file
  unsigned mode = 0;
  bool there() const { return !hash.empty(); }
};

struct BackupRow {
  fs::path path;         // relative to the root
  fs::path backup_path;  // absolute; empty for an added file
  FileMark before;
  FileMark after;
};

// The checked view of a manifest document.
struct Manifest {
  Json document;  // all fields, also those that are only carried along
  fs::path folder;
  fs::path root;
  std::string
      status;  // prepared, applied, reverted, reverted_partial, finalized, finalized_partial
  uint64_t sequence = 0;
  std::vector<BackupRow> rows;
  std::vector<fs::path> created_folders;  // relative, outermost first
  std::vector<std::string> untrusted;     // backups outside of the manifest's folder: not in rows

  fs::path path() const { return folder / "manifest.json"; }
  fs::path journal() const { return folder / "journal.jsonl"; }
};

// Errors: "invalid_manifest" naming the field.
Result<Manifest> check_manifest(Json document, const fs::path& folder);
// Errors: also "unreadable_file", "invalid_json".
Result<Manifest> read_manifest(const fs::path& path);
// Atomic and synced. Errors: "unwritable_file".
Result<void> save_manifest(const Manifest& manifest);

// One line for each step, synced before the step's effect: {event, path?}.
Result<void> note(const Manifest& manifest, std::string_view event, const fs::path& path = {});
// The lines of a journal; one that a kill cut short is left out.
std::vector<Json> read_journal(std::string_view text);
// Whether the tree may have been touched.
bool began_to_change(const Manifest& manifest);

// Manifests below the folders (at most `kRegistryDepth` deep) of `root` whose files are changed at
// present, ascending by sequence. Unreadable ones are skipped.
inline constexpr int kRegistryDepth = 4;
std::vector<Manifest> active_manifests(const std::vector<fs::path>& registry, const fs::path& root);

}  // namespace hyperloom::integrate
