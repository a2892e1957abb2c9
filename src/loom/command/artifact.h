// The portable command artifact (`.loomcmd`): one prepared program, ready to be bound to any
// executables.
//
// Little endian, every section 8-byte aligned:
//
//   header    magic "LOOMCMD\0", u16 major, u16 minor, u32 section count, u64 file size,
//             u64 XXH3 of everything after the header
//   table     per section: u32 kind, u32 zero, u64 offset, u64 size
//   sections  in ascending kind: strings, roots, parameters, bindings, entries, schedule, commands,
//             arguments, transients, indirect storage; records are fixed-size, text is an (offset,
//             length) pair into strings
//
// An artifact is checked once, as a whole, when it is opened; from then on its records are used
// where they lie. Minor versions add section kinds that an older reader of the same major may not
// skip, so a reader accepts minors up to its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "loom/base/file.h"
#include "loom/command/program_view.h"
#include "loom/diag/diagnostic.h"

namespace loom {

inline constexpr uint16_t kCommandMajor = 3;
inline constexpr uint16_t kCommandMinor = 0;

// `<symbol>.loomcmd`, with bytes that are not portable in file names replaced by '_'.
std::string artifact_file_name(std::string_view symbol);

// Encodes one program. Equal programs give equal bytes.
std::string write_artifact(const ProgramView& program);

bool is_artifact(std::string_view bytes);

// An artifact that has passed every check. Immutable; any number of threads may read it.
class CommandArtifact {
 public:
  // Maps a file. A file that is overwritten in place while it is mapped is the caller's mistake;
  // one that is replaced by another of its name stays as it was. IO/001 when it cannot be read,
  // BINARY/001 for another version, BINARY/002 for malformed bytes.
  static std::optional<CommandArtifact> open(SourceFiles& files, const std::string& path,
                                             Diagnostics& diagnostics);
  // Over bytes that outlive it and begin at a multiple of 8 (BINARY/002 where they do not).
  // `name` stands for them in diagnostics.
  static std::optional<CommandArtifact> over(SourceFiles& files, std::span<const std::byte> bytes,
                                             std::string_view name, Diagnostics& diagnostics);
  // Over a copy of bytes that lie anywhere.
  static std::optional<CommandArtifact> copy(SourceFiles& files, std::string_view bytes,
                                             std::string_view name, Diagnostics& diagnostics);

  // Its rows and texts lie inside of bytes(), and are valid as long as the artifact is.
  const ProgramView& program() const { return program_; }
  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  CommandArtifact() = default;

  MappedFile file_;                    // empty over memory
  std::unique_ptr<uint64_t[]> owned_;  // null unless the bytes were copied
  std::span<const std::byte> bytes_;
  ProgramView program_;
};

}  // namespace loom
