#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>

#include "hyperloom/workload/workload.h"
#include "loom/base/file.h"
#include "loom/base/hash.h"

namespace hyperloom::workload {

Result<std::string> tree_hash(const fs::path& tree, const std::vector<fs::path>& files) {
  std::vector<std::string> names;
  for (const fs::path& file : files) names.push_back(file.generic_string());
  std::ranges::sort(names);
  std::string rows;
  for (const std::string& name : names) {
    const std::string path = (tree / name).string();
    const auto content = loom::read_file(path);
    if (!content) {
      return fail("unreadable_file",
                  fmt::format("cannot read '{}': {}", path, content.error().reason));
    }
    struct stat status{};
    if (stat(path.c_str(), &status) != 0) {
      return fail("unreadable_file", fmt::format("cannot look at '{}'", path));
    }
    // Lengths in front: a name may hold anything.
    rows += fmt::format("{} {} {:o} {}\n", name.size(), name, status.st_mode & 07777,
                        loom::sha256_hex(*content));
  }
  return loom::sha256_hex(rows);
}

}  // namespace hyperloom::workload
