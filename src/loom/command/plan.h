// The prepared command plan: what `.loomcmd` files and the manifest say, and what runtimes read.
//
// A plan owns plain data: no module, no kernel body, no request.
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

enum class StorageClass : uint8_t {
  Fixed,       // `index` selects a row of the parameter table
  Rebindable,  // `index` selects a row of the binding list
};

// A byte range of one storage. `length` is kWholeBuffer where a buffer is passed without a view.
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
  enum class Kind : uint8_t { U32, U64, Buffer };
  Kind kind = Kind::U32;
  uint64_t value = 0;
  BufferRef buffer;
};

// A direct dispatch: entry slot, workgroup counts, arguments [argument_begin, + argument_count).
struct DispatchCommand {
  uint32_t slot = 0;
  uint32_t argument_begin = 0;
  uint32_t argument_count = 0;
  std::array<uint32_t, 3> count = {1, 1, 1};
};

// The schedule tree in pre-order. Inner nodes hold the nodes up to `end`; a leaf names a command.
// The first node is the program's serial root.
struct ScheduleNode {
  enum class Kind : uint8_t { Serial, Concurrent, Command };
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
  std::vector<BindingRow> bindings;  // the rebindable ones
  std::vector<uint32_t> slots;       // entry slot -> EntryRequirement of the plan
  std::vector<DispatchCommand> commands;
  std::vector<Argument> arguments;
  std::vector<ScheduleNode> schedule;
  std::vector<Location> locations;  // of each command's source; empty when read from an artifact
};

struct PreparedPlan {
  std::vector<PreparedProgram> programs;  // in the requested order
  std::vector<EntryRequirement> entries;  // in first-use order
};

}  // namespace loom
