#include "hyperloom/optimize/tree_copy.h"

#include <algorithm>
#include <system_error>
#include <utility>

#include "loom/base/file.h"

namespace hyperloom::optimize {
namespace {

Result<void> copy_one(const fs::path& from, const fs::path& to) {
  std::error_code error;
  fs::create_directories(to.parent_path(), error);
  if (error) return fail("unwritable_file", to.parent_path().string() + ": " + error.message());
  if (!fs::exists(from, error)) return fail("unreadable_file", from.string() + ": no such file");
  fs::copy_file(from, to, fs::copy_options::overwrite_existing, error);
  if (error) return fail("unwritable_file", to.string() + ": " + error.message());
  // A file that may not be written has to be replaced by a change all the same.
  fs::permissions(to, fs::perms::owner_write, fs::perm_options::add, error);
  return {};
}

}  // namespace

bool stays_inside(const fs::path& path) {
  return !path.empty() && path.is_relative() &&
         std::ranges::none_of(path, [](const fs::path& part) { return part == ".."; });
}

Result<TreeCopy> TreeCopy::make(const fs::path& from, const std::vector<fs::path>& files,
                                const fs::path& to) {
  std::error_code error;
  fs::remove_all(to, error);
  if (error) return fail("unwritable_file", to.string() + ": " + error.message());
  for (const fs::path& file : files) {
    if (!stays_inside(file)) return fail("path_escapes_tree", file.string() + " is not inside");
    if (auto copied = copy_one(from / file, to / file); !copied) {
      return std::unexpected(copied.error());
    }
  }
  return TreeCopy(from, to);
}

Result<void> TreeCopy::set(const Change& change) {
  for (const fs::path& file : std::exchange(changed_, {})) {
    if (auto restored = copy_one(from_ / file, root_ / file); !restored) return restored;
  }
  for (const auto& [file, content] : change.files) {
    if (!stays_inside(file)) return fail("path_escapes_tree", file.string() + " is not inside");
    changed_.insert(file);
    const fs::path path = root_ / file;
    if (auto written = loom::write_file(path.string(), content); !written) {
      return fail("unwritable_file", path.string() + ": " + written.error().reason);
    }
  }
  return {};
}

}  // namespace hyperloom::optimize
