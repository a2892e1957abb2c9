// What single operations need beyond their types: extents, schemas and layouts that are known
// before code is made.
#pragma once

#include <string_view>

#include "loom/target/llvm/exact.h"
#include "loom/target/llvm/plan.h"

namespace loom {

class OpChecks {
 public:
  explicit OpChecks(const Module& module) : module_(module) {}

  // Why the operation cannot be lowered, as the end of a sentence that begins with it; empty when
  // it can. What lowering has to know about it goes into the plan.
  std::string_view check(OpId op, const ExactValues& exact, LoweringPlan& plan);

 private:
  std::string_view check_code(OpId op, LoweringPlan& plan) const;
  std::string_view check_transfer(OpId op) const;
  std::string_view check_fragment(OpId op, const ExactValues& exact, LoweringPlan& plan) const;
  std::string_view check_product(OpId op, const ExactValues& exact, LoweringPlan& plan);

  const Module& module_;
  std::optional<bool> in_blocks_;  // states_blocks(), once somebody asked
};

// Whether an encoding is the one of encoding.isa; nothing where strides that are values decide, or
// another operation chooses it.
std::optional<bool> decided_isa(const Module& module, OpId isa);

// The bytes of a storage root.
struct RootLength {
  ValueId value;       // that holds them, or
  uint64_t bytes = 0;  // the number itself
};
// Nothing where neither an allocation nor the contract of the launch states them.
std::optional<RootLength> root_length(const Module& module, ValueId buffer);

}  // namespace loom
