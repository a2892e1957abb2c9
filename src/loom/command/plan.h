// The prepared command plan, as preparation makes it. What reads one takes a ProgramView.
//
// A plan owns plain data: no module, no kernel body, no request. Rows without text lie in memory as
// they lie in `.loomcmd` files (artifact_layout.h), so they have no padding and fixed widths.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "loom/diag/diagnostic.h"

namespace loom {

// The least storage that a binding needs.
struct StorageNeed {
  uint64_t bytes = 0;
  uint64_t alignment = 1;  // a power of two
};

enum class StorageClass : uint32_t {
  Fixed,       // `index` selects a row of the parameter table
  Rebindable,  // `index` selects a row of the binding list
  Transient,   // `index` selects a row of the transient table
};

// A byte range of one storage. `length` is kWholeBuffer where a binding is passed without a view;
// ranges of parameters and transients always have a length.
struct BufferRef {
  static constexpr uint64_t kWholeBuffer = std::numeric_limits<uint64_t>::max();
  StorageClass storage = StorageClass::Rebindable;
  uint32_t index = 0;
  uint64_t offset = 0;
  uint64_t length = kWholeBuffer;
};

// One launch argument. Scalars are exact: integers and floats of at most 32 bits as their
// zero-extended bits with kind U32, wider ones and index and offset as U64.
struct Argument {
  enum class Kind : uint64_t { U32, U64, Buffer };
  Kind kind = Kind::U32;
  uint64_t value = 0;
  BufferRef buffer;
};

// An indirect count: three unsigned 32-bit words.
inline constexpr uint64_t kCountBytes = 12;
inline constexpr uint64_t kCountAlignment = 4;

// How a dispatch gets its workgroup counts.
enum class CountForm : uint8_t {
  Direct,           // they are part of the command
  StaticIndirect,   // in a parameter, or in a binding that the program does not write
  DynamicIndirect,  // in a transient that a preceding command has written
};

// A dispatch: entry slot, workgroup counts, arguments [argument_begin, + argument_count).
struct DispatchCommand {
  static constexpr uint32_t kDirect = std::numeric_limits<uint32_t>::max();
  uint32_t slot = 0;
  uint32_t argument_begin = 0;
  uint32_t argument_count = 0;
  std::array<uint32_t, 3> count = {1, 1, 1};  // of a direct dispatch
  // Row of `indirect_storage` whose three 32-bit words are the counts; kDirect: they stand here.
  uint32_t indirect = kDirect;
};

// The schedule tree in pre-order. Inner nodes hold the nodes up to `end`; a leaf names a command.
// The first node is the program's serial root.
struct ScheduleNode {
  enum class Kind : uint32_t { Serial, Concurrent, Command };
  Kind kind = Kind::Serial;
  uint32_t command = 0;  // of a leaf
  uint32_t end = 0;      // one past the last node below; of a leaf, its own number plus one
};

struct ParameterRow {
  uint32_t binding = 0;  // source ordinal of the binding that is its root
  std::string key;
  uint64_t length = 0;     // bytes
  uint64_t alignment = 1;  // bytes, a power of two
};

struct BindingRow {
  uint32_t ordinal = 0;  // among the program's launch bindings
  std::string name;      // without '%'
};

// Storage that lives during one issue, inside of the slab that each issue in flight has for itself.
// Rows whose uses are not ordered do not overlap; others may.
struct TransientRow {
  std::string name;        // without '%'; no two rows or launch bindings share one
  uint64_t offset = 0;     // in the slab, a multiple of the alignment
  uint64_t length = 0;     // bytes
  uint64_t alignment = 1;  // a power of two
};

// An executable entry that some dispatch needs; one row a configured kernel of the whole plan.
struct EntryRequirement {
  std::string symbol;       // without '@'
  std::string export_name;  // artifact name; the symbol where none is stated
  std::string contract;     // launch contract as canonical text
  std::array<uint32_t, 3> workgroup_size = {1, 1, 1};
  int32_t request = -1;  // number of the request that serves it, -1 when none was published
};

struct PreparedProgram {
  std::string symbol;              // without '@'
  std::vector<std::string> roots;  // names of all launch bindings, by source ordinal
  std::vector<ParameterRow> parameters;
  std::vector<BindingRow> bindings;      // the rebindable ones
  std::vector<TransientRow> transients;  // in first-use order
  std::vector<uint32_t> slots;           // entry slot -> EntryRequirement of the plan
  std::vector<DispatchCommand> commands;
  std::vector<Argument> arguments;
  std::vector<BufferRef> indirect_storage;  // 12 bytes each, distinct, in first-use order
  std::vector<ScheduleNode> schedule;
  std::vector<Location> locations;  // of each command's source
};

struct PreparedPlan {
  std::vector<PreparedProgram> programs;  // in the requested order
  std::vector<EntryRequirement> entries;  // in first-use order
};

}  // namespace loom
