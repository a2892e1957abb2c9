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
// Minor versions add section kinds that an older reader of the same major may not skip, so a reader
// accepts minors up to its own.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "loom/command/plan.h"
#include "loom/diag/diagnostic.h"

namespace loom {

inline constexpr uint16_t kCommandMajor = 2;
inline constexpr uint16_t kCommandMinor = 0;

// `<symbol>.loomcmd`, with bytes that are not portable in file names replaced by '_'.
std::string artifact_file_name(std::string_view symbol);

// Encodes one program of a plan. Equal programs give equal bytes.
std::string write_artifact(const PreparedPlan& plan, const PreparedProgram& program);

bool is_artifact(std::string_view bytes);

// Decodes into a plan of one program whose entries are its slots. Every index and range is checked
// before use: BINARY/001 for another version, BINARY/002 for malformed bytes.
std::optional<PreparedPlan> read_artifact(SourceFiles& files, std::string_view bytes,
                                          std::string_view path, Diagnostics& diagnostics);

}  // namespace loom
