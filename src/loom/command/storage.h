// Traces buffers and views of a simplified program to the storage they name.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "loom/base/interner.h"
#include "loom/command/plan.h"
#include "loom/diag/diagnostic.h"
#include "loom/ir/module.h"

namespace loom {

// Fills the parameter table, the binding list and the transient table of one program as storage is
// first used. Transients get no place in the slab here.
class StorageResolver {
 public:
  StorageResolver(const Module& module, OpId root, PreparedProgram& program,
                  Diagnostics& diagnostics);

  // Decides which bindings hold parameters and lists the rebindable ones. False on COMMAND/014.
  bool classify();

  // The range that a buffer or view value names. `use` is the dispatch, for messages. Nothing when
  // an error was emitted.
  std::optional<BufferRef> resolve(ValueId value, OpId use);

  // The same for the count view of a dispatch of `kernel`; storage that is not exact or misaligned
  // is COMMAND/003.
  std::optional<BufferRef> resolve_count(ValueId view, OpId use, std::string_view kernel);

  // What would close a value: names the specialization it depends on and the flag that fixes it;
  // empty when it depends on none.
  std::string closing_repair(ValueId value) const;

 private:
  std::optional<BufferRef> resolve_parameter(OpId parameter);
  bool append_key(OpId parameter);
  std::optional<BufferRef> resolve_transient(OpId alloca);
  std::optional<BufferRef> apply(OpId op, BufferRef ref, OpId use);
  bool fit_transient(OpId op, BufferRef& ref);
  void report_range(OpId op, OpId use);
  std::string unique_name(std::string_view name);
  std::optional<uint64_t> exact_bytes(TypeId type) const;
  std::optional<std::vector<int64_t>> exact_extents(TypeId type) const;
  std::optional<uint64_t> subview_offset(OpId op) const;
  bool binding_of(ValueId value, uint32_t& ordinal) const;

  const Module& module_;
  OpId root_;
  RegionId body_;
  PreparedProgram& program_;
  Diagnostics& diagnostics_;
  std::vector<int32_t> binding_row_;  // source ordinal -> row of bindings, -1 for a parameter root
  // Key text followed by its root's ordinal; equal ids are one row of the parameter table.
  StringInterner keys_;
  std::vector<uint32_t> row_of_key_;
  std::string key_text_;
  std::vector<ValueId> chain_;
  std::string_view count_kernel_;               // while a count is resolved
  std::unordered_set<std::string> names_;       // of launch bindings and transients
  uint64_t transient_bytes_ = 0;                // of all transients side by side
  std::vector<std::optional<BufferRef>> memo_;  // by ValueId index
};

}  // namespace loom
