#include "hyperloom/core/resources.h"

#include <fmt/format.h>

namespace hyperloom {

namespace fs = std::filesystem;

Result<fs::path> kernel_agent_root(const Environment& environment) {
  std::error_code ignored;
  if (environment.has("HYPERLOOM_KERNEL_AGENT_ROOT")) {
    fs::path given = environment.text("HYPERLOOM_KERNEL_AGENT_ROOT");
    if (fs::is_directory(given, ignored)) return given;
    return fail(
        "kernel_agent_root_missing",
        fmt::format("HYPERLOOM_KERNEL_AGENT_ROOT names '{}', which is no folder", given.string()),
        "unset it, or set it to the folder share/hyperloom of an installation");
  }
  const fs::path program = fs::read_symlink("/proc/self/exe", ignored);
  fs::path beside = program.parent_path().parent_path() / "share" / "hyperloom";
  if (fs::is_directory(beside, ignored)) return beside;
  return fail("kernel_agent_root_missing", fmt::format("'{}' is no folder", beside.string()),
              "install the package whole, or set HYPERLOOM_KERNEL_AGENT_ROOT");
}

Result<fs::path> find_resource(const Environment& environment, const std::string& name) {
  std::error_code ignored;
  if (environment.has("KERNELFORGE_PROJECT_ROOT")) {
    fs::path over = fs::path(environment.text("KERNELFORGE_PROJECT_ROOT")) / name;
    if (fs::is_regular_file(over, ignored)) return over;
  }
  const auto root = kernel_agent_root(environment);
  if (!root) return std::unexpected(root.error());
  fs::path packaged = *root / name;
  if (fs::is_regular_file(packaged, ignored)) return packaged;
  return fail("resource_missing", fmt::format("'{}' is missing", packaged.string()),
              "install the package again");
}

}  // namespace hyperloom
