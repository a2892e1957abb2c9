// Closes a simplified program: parameters, counts, arguments and the schedule tree.
#pragma once

#include "loom/command/plan.h"
#include "loom/command/project.h"
#include "loom/diag/diagnostic.h"
#include "loom/ir/module.h"

namespace loom {

// Entries that a plan collects while its programs are resolved: equal kernels of equal workgroup
// size share one row.
class EntryTable {
 public:
  explicit EntryTable(std::vector<EntryRequirement>& entries) : entries_(entries) {}
  // The row for a kernel of that symbol and size; adds it on first use.
  uint32_t add(const Module& module, StringId symbol, OpId kernel,
               const std::array<uint32_t, 3>& size);
  const std::string& symbol(uint32_t entry) const { return entries_[entry].symbol; }
  OpId kernel(uint32_t entry) const { return kernels_[entry]; }

 private:
  std::vector<EntryRequirement>& entries_;
  std::vector<OpId> kernels_;
  std::map<std::pair<StringId, std::array<uint32_t, 3>>, uint32_t> rows_;
};

// Resolves one program whose body has been flattened, rewritten and simplified. After it nothing
// dynamic remains: what is left open is diagnosed (COMMAND/001-011, 014) and the
// result is false.
bool resolve_program(const Module& module, OpId root, const Projection& projection,
                     EntryTable& entries, PreparedProgram& program, Diagnostics& diagnostics);

}  // namespace loom
