// What is known about scalars before lowering: exact values and ranges.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <unordered_map>

#include "loom/dialect/numeric.h"
#include "loom/dialect/op_kind.h"
#include "loom/facts/int_facts.h"

namespace loom {

// Visit operations in an order in which definitions come before uses.
class ExactValues {
 public:
  void visit(const Module& module, OpId op);
  // What a signature's contract promises about its arguments.
  void assume_contract(const Module& module, std::span<const Predicate> predicates,
                       std::span<const ValueId> arguments);

  std::optional<ScalarValue> exact(ValueId value) const;
  // Of a value that is not negative.
  std::optional<uint64_t> upper_bound(const Module& module, ValueId value) const;

 private:
  IntFacts facts(const Module& module, ValueId value) const;
  void assume(const Module& module, std::span<const Predicate> predicates,
              std::span<const ValueId> subjects, std::span<const ValueId> holders);
  void visit_assume(const Module& module, OpId op);
  void visit_range(const Module& module, OpId op);

  std::unordered_map<uint32_t, ScalarValue> exact_;
  std::unordered_map<uint32_t, IntFacts> facts_;  // where they say more than the type
};

// The workgroup size of a kernel along each axis where its launch configuration gives the same
// value for every workload. An axis that it leaves out is 1.
std::array<std::optional<uint64_t>, 3> exact_workgroup_size(const Module& module, OpId kernel);

}  // namespace loom
