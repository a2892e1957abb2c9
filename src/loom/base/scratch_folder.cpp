#include "loom/base/scratch_folder.h"

#include <stdlib.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>

namespace loom {

namespace fs = std::filesystem;

ScratchFolder::ScratchFolder(const std::string& purpose) {
  std::error_code error;
  fs::path root = fs::temp_directory_path(error);
  if (!error) root = fs::absolute(root, error);
  if (error) {
    const char* const named = std::getenv("TMPDIR");
    const bool is_named = named != nullptr && *named != '\0';
    problem_ = {is_named ? named : "the temporary folder", error.message()};
    return;
  }
  std::string pattern = (root / ("loom-" + purpose + "-XXXXXX")).string();
  if (::mkdtemp(pattern.data()) == nullptr) {
    problem_ = {root.string(), std::strerror(errno)};
    return;
  }
  path_ = pattern;
}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  if (!path_.empty()) fs::remove_all(path_, ignored);
}

}  // namespace loom
