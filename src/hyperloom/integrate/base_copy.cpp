#include "hyperloom/integrate/base_copy.h"

#include <algorithm>

#include "hyperloom/core/durable.h"
#include "hyperloom/integrate/tree_files.h"
#include "loom/base/file.h"

namespace hyperloom::integrate {
namespace {

const BackupRow* row_of(const Manifest* applied, const fs::path& file) {
  if (applied == nullptr) return nullptr;
  const auto found = std::ranges::find_if(
      applied->rows, [&](const BackupRow& row) { return applied->root / row.path == file; });
  return found == applied->rows.end() ? nullptr : &*found;
}

}  // namespace

Result<void> copy_base(const workload::Workload& workload, const Manifest* applied,
                       const fs::path& folder) {
  std::error_code error;
  fs::remove_all(folder, error);
  if (auto made = make_folder(folder); !made) return made;
  const auto from = TreeFiles::open(workload.tree());
  if (!from) return std::unexpected(from.error());
  const auto to = TreeFiles::open(folder);
  if (!to) return std::unexpected(to.error());
  for (const fs::path& file : workload.files()) {
    const BackupRow* row = row_of(applied, from->root() / file);
    if (row != nullptr && !row->before.there()) continue;
    TreeFile content;
    if (row != nullptr) {
      auto backup = loom::read_file(row->backup_path.string());
      if (!backup) {
        return fail("unreadable_file", row->backup_path.string() + ": " + backup.error().reason);
      }
      content = {std::move(*backup), row->before.mode, ""};
    } else {
      auto there = from->read(file);
      if (!there) return std::unexpected(there.error());
      if (!*there)
        return fail("unreadable_file", (from->root() / file).string() + ": is not there");
      content = std::move(**there);
    }
    if (file.has_parent_path()) {
      if (auto made = make_folder(folder / file.parent_path()); !made) return made;
    }
    if (auto done = to->write(file, content.content, content.mode); !done) return done;
  }
  return {};
}

}  // namespace hyperloom::integrate
