#include "hyperloom/integrate/manifest.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <ranges>
#include <system_error>

#include "hyperloom/core/durable.h"
#include "hyperloom/core/fault.h"
#include "hyperloom/integrate/tree_files.h"
#include "loom/base/file.h"

namespace hyperloom::integrate {
namespace {

constexpr std::array<std::string_view, 6> kStatuses = {
    "prepared", "applied", "reverted", "reverted_partial", "finalized", "finalized_partial"};

std::unexpected<Error> wrong(const fs::path& folder, std::string_view field, std::string_view why) {
  return fail("invalid_manifest",
              fmt::format("{}: '{}' {}", (folder / "manifest.json").string(), field, why));
}

bool is_hash(const std::string& text) {
  return text.empty() ||
         (text.size() == 64 && text.find_first_not_of("0123456789abcdef") == std::string::npos);
}

std::optional<unsigned> read_mode(const Json& row, const char* name) {
  const std::string text = text_of(row, name, "0000");
  unsigned value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 8);
  if (error != std::errc() || end != text.data() + text.size() || value > 07777) {
    return std::nullopt;
  }
  return value;
}

// Below `folder` without leaving it; not the folder itself.
bool is_trusted(const fs::path& backup, const fs::path& folder) {
  const fs::path relative = backup.lexically_normal().lexically_relative(folder);
  return relative_inside(relative).has_value();
}

Result<std::optional<BackupRow>> read_row(const Json& row, Manifest& manifest) {
  const fs::path& folder = manifest.folder;
  const auto relative =
      relative_inside(fs::path(text_of(row, "path")).lexically_relative(manifest.root));
  if (!relative) return wrong(folder, "source_backups", "has a path outside of its root");
  BackupRow result{.path = *relative};
  result.before.hash = text_of(row, "before_hash");
  result.after.hash = text_of(row, "after_hash");
  const auto before = read_mode(row, "before_mode");
  const auto after = read_mode(row, "after_mode");
  if (!before || !after || !is_hash(result.before.hash) || !is_hash(result.after.hash)) {
    return wrong(folder, "source_backups", "has a bad hash or mode");
  }
  result.before.mode = *before;
  result.after.mode = *after;
  if (!result.before.there()) return result;
  result.backup_path = text_of(row, "backup_path");
  if (is_trusted(result.backup_path, folder)) return result;
  manifest.untrusted.push_back(result.backup_path.string());
  return std::nullopt;
}

}  // namespace

Result<Manifest> check_manifest(Json document, const fs::path& folder) {
  Manifest manifest{.folder = folder.lexically_normal()};
  if (!document.is_object()) return wrong(folder, "", "is no object");
  if (number_of(document, "schema_version") != 1)
    return wrong(folder, "schema_version", "is not 1");
  manifest.status = text_of(document, "status");
  if (std::ranges::find(kStatuses, manifest.status) == kStatuses.end()) {
    return wrong(folder, "status", "is none");
  }
  manifest.root = text_of(document, "root");
  if (!manifest.root.is_absolute()) return wrong(folder, "root", "is no absolute path");
  const Json& sequence = value_of(document, "sequence");
  if (!sequence.is_number_unsigned()) return wrong(folder, "sequence", "is no whole number");
  manifest.sequence = sequence.get<uint64_t>();
  const Json& rows = value_of(document, "source_backups");
  if (!rows.is_array()) return wrong(folder, "source_backups", "is no list");
  for (const Json& each : rows) {
    auto row = read_row(each, manifest);
    if (!row) return std::unexpected(row.error());
    if (*row) manifest.rows.push_back(std::move(**row));
  }
  const Json& folders = value_of(document, "created_folders");
  if (!folders.is_array()) return wrong(folder, "created_folders", "is no list");
  for (const Json& each : folders) {
    const auto inside = relative_inside(each.is_string() ? each.get<std::string>() : "");
    if (!inside) return wrong(folder, "created_folders", "leaves the root");
    manifest.created_folders.push_back(*inside);
  }
  manifest.document = std::move(document);
  return manifest;
}

Result<Manifest> read_manifest(const fs::path& path) {
  auto document = read_json(path);
  if (!document) return std::unexpected(document.error());
  return check_manifest(std::move(*document), fs::absolute(path).parent_path());
}

Result<void> save_manifest(const Manifest& manifest) {
  Json document = manifest.document;
  document["status"] = manifest.status;
  fault_point("patch_manifest");
  return write_durable(manifest.path(),
                       document.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
}

Result<void> note(const Manifest& manifest, std::string_view event, const fs::path& path) {
  Json line = {{"event", event}};
  if (!path.empty()) line["path"] = path.string();
  fault_point("patch_journal");
  return append_line(manifest.journal(), compact(line));
}

std::vector<Json> read_journal(std::string_view text) {
  std::vector<Json> lines;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    if (end == std::string_view::npos) break;
    auto line = parse_json(text.substr(0, end), "journal");
    if (line && line->is_object()) lines.push_back(std::move(*line));
    text.remove_prefix(end + 1);
  }
  return lines;
}

bool began_to_change(const Manifest& manifest) {
  const auto text = loom::read_file(manifest.journal().string());
  if (!text) return false;
  return std::ranges::any_of(read_journal(*text),
                             [](const Json& line) { return text_of(line, "event") == "changing"; });
}

std::vector<Manifest> active_manifests(const std::vector<fs::path>& registry,
                                       const fs::path& root) {
  std::vector<Manifest> result;
  for (const fs::path& start : registry) {
    std::error_code error;
    fs::recursive_directory_iterator at(start, error);
    for (; !error && at != fs::recursive_directory_iterator(); at.increment(error)) {
      if (at.depth() >= kRegistryDepth) at.disable_recursion_pending();
      if (at->path().filename() != "manifest.json") continue;
      auto manifest = read_manifest(at->path());
      if (!manifest || manifest->root != root) continue;
      const bool active = manifest->status == "applied" || manifest->status == "reverted_partial" ||
                          (manifest->status == "prepared" && began_to_change(*manifest));
      if (active) result.push_back(std::move(*manifest));
    }
  }
  std::ranges::sort(result, {}, &Manifest::sequence);
  return result;
}

}  // namespace hyperloom::integrate
