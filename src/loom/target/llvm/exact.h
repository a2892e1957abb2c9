// Exact values and upper bounds of scalars, as far as single operations give them.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <unordered_map>

#include "loom/dialect/numeric.h"
#include "loom/dialect/op_kind.h"

namespace loom {

// Visit operations in an order in which definitions come before uses.
class ExactValues {
 public:
  void visit(const Module& module, OpId op);
  // Gives `holders[i]` the upper bounds that the predicates state for `subjects[i]`.
  void assume(std::span<const Predicate> predicates, std::span<const ValueId> subjects,
              std::span<const ValueId> holders);

  std::optional<ScalarValue> exact(ValueId value) const;
  // Of a value that cannot be negative.
  std::optional<uint64_t> upper_bound(ValueId value) const;

 private:
  void bound(ValueId value, int64_t limit);
  void visit_assume(const Module& module, OpId op);
  void visit_bound(const Module& module, OpId op);

  std::unordered_map<uint32_t, ScalarValue> exact_;
  std::unordered_map<uint32_t, int64_t> limits_;
};

// The workgroup size of a kernel along each axis where its launch configuration gives the same
// value for every workload. An axis that it leaves out is 1.
std::array<std::optional<uint64_t>, 3> exact_workgroup_size(const Module& module, OpId kernel);

}  // namespace loom
