// Which files a payload may name.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hyperloom/core/environment.h"
#include "hyperloom/core/json.h"
#include "hyperloom/session/layout.h"

namespace hyperloom::policy {

namespace fs = std::filesystem;

enum class PathRole : uint8_t { ReadSession, ReadFramework, WriteFramework };

// Absolute, without "." and "..", with every symbolic link of it resolved, one component after the
// other on handles that follow none. What does not exist stays as it is written. Errors:
// "invalid_path" for a relative path, too many links or components, or a folder that may not be
// looked into.
Result<fs::path> resolve_path(const fs::path& path);

// Whether `path` is `root` or below it; both are resolved already.
bool is_inside(const fs::path& path, const fs::path& root);

// A text that means that there is no path: "", "none", "n/a", "unresolved", ...
bool is_absent_path(std::string_view text);

// Where the sources lie that a request may name: the workload's tree, then the folders of
// INFERENCE_OPTIMIZER_FRAMEWORK_SOURCE_ROOTS. One that is no absolute path is left out.
std::vector<fs::path> trusted_roots(const Environment& environment, const fs::path& tree);

// The role of the key, if it names files.
std::optional<PathRole> path_role(std::string_view key);

// Calls `visit` with each text of the payload that names a file, and its place
// ("params.patch_path", "candidate.files[2]"). The innermost key that has a role decides; lists and
// objects inherit.
void visit_paths(const Json& payload,
                 const std::function<void(const std::string& place, PathRole role,
                                          const std::string& text)>& visit);

// Judges paths of one session. A relative path is one of the session, or for the framework roles
// one of the first trusted root.
class Sandbox {
 public:
  Sandbox(const session::Layout& layout, const std::vector<fs::path>& trusted);
  // Why the text may not be named in that role; nothing when it may. Errors as resolve_path().
  std::optional<std::string> refuse(PathRole role, const std::string& text) const;

 private:
  fs::path session_;
  std::vector<fs::path> own_;      // resolved: session folder, its run folder, kernel workspaces
  std::vector<fs::path> trusted_;  // resolved
};

}  // namespace hyperloom::policy
