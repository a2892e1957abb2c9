// Files as the tools need them: whole reads, read-only maps, and writes that appear whole or not
// at all. Every failure is a value that names the path and the system's reason.
#pragma once

#include <cstddef>
#include <expected>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace loom {

struct FileError {
  std::string path;
  std::string reason;  // the system's words, e.g. "No such file or directory"
};
template <class T>
using FileResult = std::expected<T, FileError>;

// Reads a whole file; "-" reads standard input.
FileResult<std::string> read_file(const std::string& path);

// Read-only private mapping of a file, released on destruction. An empty file maps to an empty
// span. Move-only. The base address is page aligned.
class MappedFile {
 public:
  static FileResult<MappedFile> open(const std::string& path);
  MappedFile() = default;
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  std::span<const std::byte> bytes() const { return {data_, size_}; }

 private:
  const std::byte* data_ = nullptr;
  size_t size_ = 0;
};

// Replaces `path` with `content` atomically: written to a temporary file beside it, synced,
// renamed, with the old permissions. On failure the old content stays and no temporary file is
// left. A symbolic link stays and its target is replaced; devices and pipes are written in place.
// "-" writes standard output.
FileResult<void> write_file(const std::string& path, std::string_view content);

// Several output files that appear together. add() stages content on disk beside its destination;
// commit() renames all of them; without a commit the destructor removes every staged file, and
// folders that add_folder() created and that are still empty.
class OutputSet {
 public:
  OutputSet() = default;
  OutputSet(const OutputSet&) = delete;
  OutputSet& operator=(const OutputSet&) = delete;
  ~OutputSet();

  FileResult<void> add(const std::string& path, std::string_view content);
  // Creates the folder and its missing parents now.
  FileResult<void> add_folder(const std::string& path);
  // If one rename fails, the files renamed before it are removed again where they did not exist.
  // Standard output, devices and pipes are written before: when one fails, no file appears.
  FileResult<void> commit();

 private:
  struct Staged {
    std::string temporary;
    std::string path;
  };
  struct Special {
    std::string path;
    std::string content;
  };
  std::vector<Staged> staged_;
  std::vector<Special> special_;
  std::vector<std::string> created_folders_;
};

}  // namespace loom
