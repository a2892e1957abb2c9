// A schedule tree made flat for the CPU: what is left of it once only the order counts.
//
// Dispatches become records in textual order; one whose counts are read at issue is a fork over
// its workgroups. Serial nodes vanish into the sequence around them,
// and so do concurrent nodes that hold less than two siblings or stand directly in another one.
// What remains alternates: a sequence has steps, a step is a run of records or a fork, a fork has
// sequences that are unordered. The records below any node are consecutive, so a fork can always
// be run by one thread as if it were a run.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "loom/command/plan.h"
#include "loom/runtime/program.h"
#include "loom/target/x86/kernel_abi.h"

namespace loom {

// All that a dispatch needs at issue. Two of them fill a cache line.
struct DispatchRecord {
  LoomKernelEntry entry = nullptr;
  const LoomDispatchShape* shape = nullptr;
  uint64_t workgroups = 0;
  uint32_t args = 0;     // first argument slot, or the block of an indirect dispatch
  uint32_t command = 0;  // of the plan
};
static_assert(sizeof(DispatchRecord) == 32);

// An indirect dispatch has a block of slots of its own: where its counts are, what they count, whom
// to tell of counts that cannot be numbered, and its arguments. `run_indirect` in its record reads
// them, so that a run over records knows nothing of it. `workgroups` is 1 then, and `shape` has the
// workgroup size.
struct IndirectBlock {
  enum Slot : uint32_t { Counts, Entry, Invocation, Command, Arguments };
};
void run_indirect(const uint64_t* block, const LoomDispatchShape* shape, uint64_t begin,
                  uint64_t end);

// The counts of an indirect dispatch as they are now.
struct IndirectCounts {
  LoomDispatchShape shape{};
  uint64_t workgroups = 0;  // also 0, and noted in the invocation, when they cannot be numbered
};
IndirectCounts read_counts(const uint64_t* block, const LoomDispatchShape* shape);

inline constexpr uint32_t kNone = std::numeric_limits<uint32_t>::max();

struct Step {
  uint32_t fork = kNone;  // kNone: a run of the records
  uint32_t first = 0;     // records, also of a fork
  uint32_t last = 0;
};

struct Sequence {
  uint32_t fork = kNone;  // that it belongs to; kNone for the first sequence, the whole program
  uint32_t step_begin = 0;
  uint32_t step_end = 0;
  uint32_t first = 0;  // records
  uint32_t last = 0;
};

struct Fork {
  enum class Kind : uint8_t {
    Sequences,   // siblings that may hold forks themselves
    Runs,        // siblings that are plain runs
    Workgroups,  // one dispatch whose workgroups may be spread; no sequences
  };
  Kind kind = Kind::Sequences;
  bool indirect = false;  // of a dispatch: how many workgroups is read at issue
  uint32_t sequence_begin = 0;
  uint32_t sequence_end = 0;
  uint32_t sequence = 0;  // that it is a step of
  uint32_t step = 0;
  uint32_t first = 0;  // records
  uint32_t last = 0;
};

// A dispatch of as many workgroups is spread over threads until it was measured to be cheap. One of
// fewer, which may be two halves of a matrix product or next to nothing, is run by one thread until
// it was measured to be worth more.
inline constexpr uint64_t kWideDispatch = 16;

// The slots of a block that repeat arguments of the plan.
struct BlockSlots {
  uint32_t block = 0;  // first slot
  uint32_t command = 0;
};

struct FlatProgram {
  std::vector<LoomDispatchShape> shapes;  // distinct ones; records point into it
  std::vector<DispatchRecord> records;
  std::vector<BlockSlots> blocks;  // of indirect dispatches, behind the slots of all arguments
  uint32_t slot_count = 0;         // all slots
  std::vector<Step> steps;
  std::vector<Sequence> sequences;
  std::vector<Fork> forks;
};

// Takes time and memory linear in the plan, whatever its nesting. Dispatches without workgroups
// leave no record. `entries` is by entry slot; every dispatch has a number of workgroups.
FlatProgram flatten(const ProgramView& program, std::span<const EntryAddress> entries);

}  // namespace loom
