// Reads arbitrary text as a manifest (or as a journal): what is accepted stays inside of its root
// and its folder.
#include <cstdlib>

#include "hyperloom/integrate/manifest.h"
#include "hyperloom/integrate/tree_files.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace hyperloom::integrate;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  (void)read_journal(text);
  auto document = hyperloom::parse_json(text, "manifest.json");
  if (!document) return 0;
  const auto manifest = check_manifest(std::move(*document), "/backup");
  if (!manifest) return 0;
  for (const BackupRow& row : manifest->rows) {
    if (!relative_inside(row.path)) std::abort();
    if (!row.backup_path.empty() &&
        !relative_inside(row.backup_path.lexically_normal().lexically_relative("/backup"))) {
      std::abort();
    }
  }
  for (const fs::path& folder : manifest->created_folders) {
    if (!relative_inside(folder)) std::abort();
  }
  return 0;
}
