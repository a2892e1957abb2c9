// A parameter file of any known format, and the set of files a program takes its parameters from.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "loom/base/file.h"
#include "loom/diag/diagnostic.h"
#include "loom/runtime/parameters/parameter_entry.h"

namespace loom {

// Maps a file and lists what it holds, without copying any of it. Entries and their bytes live as
// long as the object; moving it leaves them where they are. Reading is thread-safe. The mapping
// follows the file, so the file must not be written in place while it is in use.
class ParameterFile {
 public:
  // The content decides on the format. Reports IO/001 when the file cannot be mapped, RUN/006 when
  // it is no valid GGUF or safetensors file, RUN/007 when it is no valid npy file.
  static std::optional<ParameterFile> open(const std::string& path, Diagnostics& diagnostics);
  // The same over bytes that outlive the object; `name` stands for the path in messages.
  static std::optional<ParameterFile> from_bytes(std::span<const std::byte> bytes,
                                                 const std::string& name, Diagnostics& diagnostics);

  const std::string& path() const { return path_; }
  FileFormat format() const { return parsed_.format; }
  uint32_t version() const { return parsed_.version; }
  uint64_t size() const { return size_; }
  // In the order of the file's header. An npy file has one entry, named like the file without
  // folder and extension.
  std::span<const ParameterEntry> entries() const { return parsed_.entries; }
  // Null when there is none; expected constant time.
  const ParameterEntry* find(std::string_view name) const;

 private:
  ParameterFile() = default;
  MappedFile mapped_;
  std::string path_;
  uint64_t size_ = 0;
  ParsedFile parsed_{};
  std::unordered_map<std::string_view, uint32_t> index_;
};

// An array read from an npy file; its bytes live as long as the object.
struct ArrayFile {
  MappedFile mapped;
  ArrayType type;
  std::span<const std::byte> bytes;

  // Reports IO/001 or RUN/007, and RUN/001 when `expected` is given and differs.
  static std::optional<ArrayFile> open(const std::string& path,
                                       const std::optional<ArrayType>& expected,
                                       Diagnostics& diagnostics);
};

// The files that supply a program's parameters, each to every root or to one. Lookups are
// thread-safe once the last file was added.
class ParameterSet {
 public:
  struct Found {
    const ParameterFile* file = nullptr;
    const ParameterEntry* entry = nullptr;
    explicit operator bool() const { return entry != nullptr; }
  };

  // `root` is the name of a root binding without its sigil; empty supplies every root. Two files
  // for the same root that hold the same name are reported (RUN/006, naming both) and the second is
  // left out.
  bool add(ParameterFile file, const std::string& root, Diagnostics& diagnostics);
  bool open(const std::string& path, const std::string& root, Diagnostics& diagnostics);

  // Files of that root come before those of every root. Nothing when no file has the key.
  Found find(std::string_view root, std::string_view key) const;
  // The name that differs least from a key that was not found; empty when none is close.
  std::string closest(std::string_view root, std::string_view key) const;
  size_t file_count() const { return files_.size(); }
  // RUN/004 for a key that find() does not find, with the closest name as a hint.
  void report_missing(std::string_view root, std::string_view key, Diagnostics& diagnostics) const;
  // The bytes of a parameter. Nothing after reporting that no file has it, or that it has another
  // size (RUN/005).
  std::optional<std::span<const std::byte>> bytes_of(std::string_view root, std::string_view key,
                                                     uint64_t bytes,
                                                     Diagnostics& diagnostics) const;

 private:
  struct Attached {
    std::unique_ptr<ParameterFile> file;
    std::string root;
  };
  std::vector<Attached> files_;
};

// Builds a file of the given format, with equal bytes for equal input. npy takes exactly one array,
// whose name is not stored. Reports RUN/008 naming `path`, and nothing is written.
std::optional<std::string> build_parameter_file(FileFormat format, const std::string& path,
                                                std::span<const ParameterSource> arrays,
                                                Diagnostics& diagnostics);
// By the extension .gguf, .safetensors or .npy.
std::optional<FileFormat> format_from_path(std::string_view path);

}  // namespace loom
