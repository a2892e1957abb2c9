// What the fuzzers of this room hold every accepted file to.
#pragma once

#include <cstddef>
#include <span>

#include "loom/runtime/parameters/parameter_entry.h"

namespace loom {

// Traps unless each entry's bytes lie inside of the file, where its offset says, and are as many as
// its type needs.
inline void check_entries(const ParsedFile& parsed, std::span<const std::byte> file) {
  for (const ParameterEntry& entry : parsed.entries) {
    if (entry.bytes.empty()) continue;
    if (entry.offset > file.size() || entry.bytes.size() > file.size() - entry.offset) {
      __builtin_trap();
    }
    if (entry.bytes.data() != file.data() + entry.offset) __builtin_trap();
    if (entry.element && entry.type().byte_size() != entry.bytes.size()) __builtin_trap();
  }
}

}  // namespace loom
