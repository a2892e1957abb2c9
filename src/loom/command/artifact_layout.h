// Record layouts of `.loomcmd`, shared by its writer and by what reads it in place. See artifact.h.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>

#include "loom/command/plan.h"

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
// Of sections in the file, and so of the bytes as a whole.
inline constexpr uint64_t kSectionAlignment = 8;

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
  std::array<uint32_t, 3> workgroup_size;
  uint32_t zero;
};
struct TransientRow {
  Text name;
  uint64_t offset;
  uint64_t length;
  uint64_t alignment;
};

// Sections whose rows are those of the plan.
template <class Row>
inline constexpr bool kLiesAsInFile =
    std::is_trivially_copyable_v<Row> && std::has_unique_object_representations_v<Row>;
static_assert(std::endian::native == std::endian::little, "records are used as they lie");
static_assert(kLiesAsInFile<ScheduleNode> && sizeof(ScheduleNode) == 12);
static_assert(kLiesAsInFile<DispatchCommand> && sizeof(DispatchCommand) == 28);
static_assert(kLiesAsInFile<Argument> && sizeof(Argument) == 40);
static_assert(kLiesAsInFile<BufferRef> && sizeof(BufferRef) == 24);
static_assert(kLiesAsInFile<Header> && sizeof(Header) == 32);
static_assert(kLiesAsInFile<SectionRow> && sizeof(SectionRow) == 24);
static_assert(kLiesAsInFile<ParameterRow> && sizeof(ParameterRow) == 32);
static_assert(kLiesAsInFile<BindingRow> && sizeof(BindingRow) == 16);
static_assert(kLiesAsInFile<EntryRow> && sizeof(EntryRow) == 40);
static_assert(kLiesAsInFile<TransientRow> && sizeof(TransientRow) == 32);

// The sections of one artifact, where they lie.
struct Rows {
  std::string_view strings;
  std::span<const RootRow> roots;
  std::span<const ParameterRow> parameters;
  std::span<const BindingRow> bindings;
  std::span<const EntryRow> entries;
  std::span<const ScheduleNode> schedule;
  std::span<const DispatchCommand> commands;
  std::span<const Argument> arguments;
  std::span<const TransientRow> transients;
  std::span<const BufferRef> indirect_storage;
};

}  // namespace loom::artifact
