// Source trees that an attempt may write: copies, and what differs in them.
#pragma once

#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "hyperloom/core/error.h"
#include "hyperloom/core/json.h"

namespace hyperloom::optimize {

namespace fs = std::filesystem;

// What a candidate does to the sources: whole new contents under relative paths, and configuration
// that no source can hold.
struct Change {
  std::map<fs::path, std::string> files;
  Json envs = Json::object();
  std::vector<std::string> words;  // what was done, for people
  bool empty() const { return files.empty() && envs.empty(); }
};

// A copy of the files of a tree, in which one change at a time is in place.
class TreeCopy {
 public:
  // Copies `files`, relative, with their permissions, to `to`, which is emptied before. Errors:
  // "unreadable_file", "unwritable_file".
  static Result<TreeCopy> make(const fs::path& from, const std::vector<fs::path>& files,
                               const fs::path& to);

  const fs::path& root() const { return root_; }
  // Takes the last change back and puts this one in. Errors: as above; "path_escapes_tree".
  Result<void> set(const Change& change);

 private:
  TreeCopy(fs::path from, fs::path root) : from_(std::move(from)), root_(std::move(root)) {}

  fs::path from_;
  fs::path root_;
  std::set<fs::path> changed_;
};

// Whether a relative path stays inside of the tree that it is below of, by its words alone.
bool stays_inside(const fs::path& path);

}  // namespace hyperloom::optimize
