#include "hyperloom/optimize/bundle.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "hyperloom/integrate/diff.h"
#include "hyperloom/optimize/run_files.h"
#include "hyperloom/optimize/task_key.h"
#include "loom/base/file.h"

namespace hyperloom::optimize {
namespace {

unsigned mode_of(const fs::path& path) {
  std::error_code error;
  const auto permissions = fs::status(path, error).permissions();
  return error ? 0644 : static_cast<unsigned>(permissions & fs::perms::mask);
}

}  // namespace

bool may_be_source(const fs::path& path) {
  static constexpr std::array kProse = {".log", ".txt", ".md"};
  return std::ranges::find(kProse, path.extension().string()) == kProse.end();
}

Result<Json> write_bundle(const fs::path& folder, const fs::path& tree, const Change& change,
                          const std::string& producer, Json manifest) {
  const fs::path snapshot = folder / "snapshot";
  std::string patch;
  Json descriptors = Json::array();
  Json paths = Json::array();
  for (const auto& [file, content] : change.files) {
    if (!stays_inside(file)) return fail("path_escapes_tree", file.string() + " is not inside");
    if (!may_be_source(file)) return fail("invalid_bundle", file.string() + " is no source");
    const auto old = loom::read_file((tree / file).string());
    if (!old) return fail("unreadable_file", old.error().path + ": " + old.error().reason);
    const unsigned mode = mode_of(tree / file);
    patch += integrate::write_diff(file.generic_string(), integrate::DiffSide{*old, mode},
                                   integrate::DiffSide{content, mode});
    descriptors.push_back({{"op", "write"}, {"path", file.generic_string()}});
    paths.push_back(file.generic_string());
    if (auto saved = save_text("kernel_opt.snapshot", snapshot / file, content); !saved) {
      return std::unexpected(saved.error());
    }
  }
  manifest["producer"] = producer;
  manifest["words"] = change.words;
  manifest["extra_envs"] = change.envs;
  manifest["write_paths"] = paths;
  const fs::path manifest_path = folder / "manifest.json";
  if (auto saved = save_json("kernel_opt.manifest", manifest_path, manifest); !saved) {
    return std::unexpected(saved.error());
  }
  if (change.files.empty()) return Json();
  const fs::path patch_path = folder / "best.patch";
  if (auto saved = save_text("kernel_opt.patch", patch_path, patch); !saved) {
    return std::unexpected(saved.error());
  }
  return Json{{"type", "patch_snapshot"},
              {"producer", producer},
              {"producer_manifest", manifest_path.string()},
              {"snapshot_dir", snapshot.string()},
              {"patch_path", patch_path.string()},
              {"repo_root", tree.string()},
              {"descriptors", std::move(descriptors)},
              {"write_paths", std::move(paths)},
              {"delete_paths", Json::array()}};
}

Result<Change> read_bundle(const Json& bundle) {
  const fs::path snapshot = text_of(bundle, "snapshot_dir");
  if (text_of(bundle, "type") != "patch_snapshot" || snapshot.empty()) {
    return fail("invalid_bundle", "the bundle is no patch snapshot");
  }
  Change change;
  for (const std::string& name : strings_of(value_of(bundle, "write_paths"))) {
    if (!stays_inside(name)) return fail("path_escapes_tree", name + " is not inside");
    auto content = loom::read_file((snapshot / name).string());
    if (!content) {
      return fail("unreadable_file", content.error().path + ": " + content.error().reason);
    }
    change.files[name] = std::move(*content);
  }
  return change;
}

}  // namespace hyperloom::optimize
