// The files of one source tree, reached from a handle of its root so that no symbolic link below it
// is ever followed, and the lock that says whose hand is on the tree.
#pragma once

#include <filesystem>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "hyperloom/core/error.h"
#include "hyperloom/core/time.h"

namespace hyperloom::integrate {

namespace fs = std::filesystem;

// Not empty, not absolute, without "." and "..", without NUL and backslash-free of tricks: what may
// be joined to a root. Errors: "path_escapes_tree".
Result<fs::path> relative_inside(const fs::path& path);

struct TreeFile {
  std::string content;
  unsigned mode = 0644;  // permission bits
  std::string hash;      // sha256 of the content
};

// Paths are relative to the root. Threads: any; two writers of one tree exclude each other by
// TreeLock. Move-only.
class TreeFiles {
 public:
  // Resolves links of the root itself. Errors: "unreadable_file".
  static Result<TreeFiles> open(const fs::path& root);
  TreeFiles(TreeFiles&& other) noexcept;
  TreeFiles& operator=(TreeFiles&& other) noexcept;
  ~TreeFiles();

  const fs::path& root() const { return root_; }
  // Nothing when there is no such file. Errors: "path_escapes_tree" (a link on the way or in place
  // of the file), "unreadable_file" (no regular file, larger than 64 MiB, ...).
  Result<std::optional<TreeFile>> read(const fs::path& path) const;
  // Written beside, synced, renamed over what is there, folder synced. The folder must exist.
  // Errors: "unwritable_file", "path_escapes_tree"; the old file is then untouched.
  Result<void> write(const fs::path& path, std::string_view content, unsigned mode) const;
  // No error when it is gone already.
  Result<void> remove(const fs::path& path) const;
  // What a killed write() left beside the file.
  void remove_leftover(const fs::path& path) const;
  // Parents of `path` that are not there, the outermost first.
  Result<std::vector<fs::path>> missing_folders(const fs::path& path) const;
  Result<void> make_folder(const fs::path& path) const;
  // Whether it is gone; false when it holds something.
  Result<bool> remove_folder(const fs::path& path) const;

 private:
  TreeFiles(fs::path root, int fd) : root_(std::move(root)), fd_(fd) {}
  Result<int> open_parent(const fs::path& path) const;
  fs::path root_;
  int fd_ = -1;
};

// Held on the folders themselves (flock), so that it leaves no file behind, ends with the process,
// and works on a tree that may not be written. Move-only.
class TreeLock {
 public:
  // All of the folders or none; waits for the other hand until the deadline. Errors:
  // "tree_locked", "unreadable_file", "cancelled".
  static Result<TreeLock> acquire(std::vector<fs::path> folders, const Deadline& deadline,
                                  const std::stop_token& stop);
  TreeLock(TreeLock&& other) noexcept;
  TreeLock& operator=(TreeLock&& other) noexcept;
  ~TreeLock();

 private:
  TreeLock() = default;
  std::vector<int> fds_;
};

// The root and every folder in it that holds one of the files.
std::vector<fs::path> folders_to_lock(const fs::path& root, const std::vector<fs::path>& files);

}  // namespace hyperloom::integrate
