#include "common/library_flags.h"

#include <algorithm>
#include <filesystem>

namespace loom {
namespace {

std::vector<std::string> level_names() {
  std::vector<std::string> names;
  for (const CpuLevel& level : cpu_levels()) names.emplace_back(level.name);
  return names;
}

std::string file_name_of(const std::string& path) {
  return std::filesystem::path(path).filename().string();
}

}  // namespace

void LibraryFlags::declare(CLI::App& app) {
  app.add_option("--emit-header", header,
                 "file for the C header of a shared object; needs --format=shared-object");
  app.add_option("--levels", levels,
                 "levels of processors that a shared object has variants for, of " +
                     CLI::detail::join(level_names(), ", ") +
                     "; x86-64-v2 to x86-64-v4 if not stated")
      ->delimiter(',')
      ->expected(1)
      ->take_all()
      ->check(CLI::IsMember(level_names()));
}

std::optional<std::string> LibraryFlags::problem(const std::string& output,
                                                 const std::string& target) const {
  if (target != "x86_64") {
    return "a shared object is for --target=x86_64; --levels says for which processors";
  }
  if (output == "-" || file_name_of(output).empty()) {
    return "a shared object needs the name of its file; state --output=FILE";
  }
  return std::nullopt;
}

LibraryOptions LibraryFlags::options(const std::string& output) const {
  LibraryOptions options;
  options.file_name = file_name_of(output);
  for (const CpuLevel& level : cpu_levels()) {
    if (std::ranges::find(levels, level.name) != levels.end()) options.levels.push_back(&level);
  }
  if (options.levels.empty()) options.levels = default_levels();
  return options;
}

}  // namespace loom
