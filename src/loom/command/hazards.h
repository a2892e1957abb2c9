// Concurrent commands that touch the same bytes, at least one of them writing.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "loom/command/order.h"
#include "loom/command/plan.h"
#include "loom/command/resolve.h"
#include "loom/diag/diagnostic.h"
#include "loom/ir/module.h"

namespace loom {

// What one command may do to a byte range of one storage. Storages are told apart by what they are
// in the source: two transients that share bytes of the slab are two, and so are two bindings,
// whatever an issue binds to them.
struct StorageAccess {
  uint32_t command = 0;
  StorageClass storage = StorageClass::Rebindable;
  uint32_t index = 0;
  uint64_t begin = 0;
  uint64_t end = 0;
  bool write = false;
  bool known = true;  // from a kernel body or the plan, not from want of one
};

struct Hazard {
  uint32_t first = 0;  // command, less than `second`
  uint32_t second = 0;
  StorageClass storage = StorageClass::Rebindable;
  uint32_t index = 0;
  uint64_t begin = 0;  // the first bytes that both touch
  uint64_t end = 0;
  bool known = true;
};

// Every pair of concurrent commands and storage with a hazard, once, ordered by second, first,
// storage and index. A known hazard wins over an unknown one.
std::vector<Hazard> find_hazards(std::span<const StorageAccess> accesses,
                                 const CommandOrder& order);

// Reports the hazards of one resolved program (COMMAND/013): errors, and remarks where a kernel has
// no body. Bodies in `module` that are open narrow the byte ranges. Pairs of equal places are
// reported once.
void check_hazards(const Module& module, const EntryTable& entries, const PreparedProgram& program,
                   Diagnostics& diagnostics);

}  // namespace loom
