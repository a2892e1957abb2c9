// A folder for files that something else reads or writes.
#pragma once

#include <string>

#include "loom/base/file.h"

namespace loom {

// A new folder in the system's temporary one, for this user alone; it goes away with everything in
// it.
class ScratchFolder {
 public:
  // `purpose` is a part of its name, such as "oracle".
  explicit ScratchFolder(const std::string& purpose);
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  ~ScratchFolder();

  const std::string& path() const { return path_; }      // empty where none could be made
  const FileError& problem() const { return problem_; }  // why there is none

 private:
  std::string path_;
  FileError problem_;
};

}  // namespace loom
