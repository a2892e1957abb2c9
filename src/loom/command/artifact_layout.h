// Record layouts of `.loomcmd`, shared by its writer and reader. See artifact.h.
#pragma once

#include <cstdint>
#include <string_view>

namespace loom::artifact {

inline constexpr std::string_view kMagic{"LOOMCMD\0", 8};

enum class Section : uint32_t {
  Strings = 1,
  Roots,
  Parameters,
  Bindings,
  Entries,
  Schedule,
  Commands,
  Arguments,
  Transients,
  IndirectStorage,
};
inline constexpr uint32_t kSectionCount = 10;

struct Header {
  char magic[8];
  uint16_t major;
  uint16_t minor;
  uint32_t section_count;
  uint64_t file_size;
  uint64_t hash;
};
struct SectionRow {
  uint32_t kind;
  uint32_t zero;
  uint64_t offset;
  uint64_t size;
};
struct Text {
  uint32_t offset;
  uint32_t length;
};
// The first root row names the program itself, the others its launch bindings.
struct RootRow {
  Text name;
};
struct ParameterRow {
  uint32_t binding;
  uint32_t zero;
  Text key;
  uint64_t length;
  uint64_t alignment;
};
struct BindingRow {
  uint32_t ordinal;
  uint32_t zero;
  Text name;
};
struct EntryRow {
  Text symbol;
  Text export_name;
  Text contract;
  uint32_t size[3];
  uint32_t zero;
};
struct NodeRow {
  uint32_t kind;
  uint32_t command;
  uint32_t end;
  uint32_t zero;
};
struct CommandRow {
  uint32_t slot;
  uint32_t argument_begin;
  uint32_t argument_count;
  uint32_t count[3];
  uint32_t indirect;  // row of the indirect storage section, or all ones
  uint32_t zero;
};
struct ArgumentRow {
  uint32_t kind;
  uint32_t storage;
  uint32_t index;
  uint32_t zero;
  uint64_t value;  // scalar bits, or the byte offset of a buffer
  uint64_t length;
};
struct TransientRow {
  Text name;
  uint64_t offset;
  uint64_t length;
  uint64_t alignment;
};
struct IndirectRow {
  uint32_t storage;
  uint32_t index;
  uint64_t offset;
};
static_assert(sizeof(Header) == 32 && sizeof(SectionRow) == 24 && sizeof(ParameterRow) == 32 &&
              sizeof(EntryRow) == 40 && sizeof(CommandRow) == 32 && sizeof(ArgumentRow) == 32 &&
              sizeof(TransientRow) == 32 && sizeof(IndirectRow) == 16);

}  // namespace loom::artifact
