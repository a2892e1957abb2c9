// Values inside a kernel that its launch arguments decide, and what they are at one launch.
#pragma once

#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "loom/command/plan.h"
#include "loom/dialect/eval.h"
#include "loom/dialect/numeric.h"
#include "loom/ir/module.h"

namespace loom {

// A value inside a kernel that follows from its scalar launch arguments, and from the lengths of
// its buffers, alone.
struct LaunchValue {
  enum class Kind : uint8_t { Constant, Argument, Length, Operation };
  Kind kind = Kind::Constant;
  ScalarValue constant;   // otherwise: the kind of the result
  uint32_t argument = 0;  // launch argument that it is or is the length of
  OpKind op{};
  EvalAttrs attrs;
  std::vector<uint32_t> operands;  // earlier values
};

// The value behind promises about a buffer, which do not move it.
ValueId promised_root(const Module& module, ValueId buffer);

// Numbers the values that follow from a kernel's scalar arguments.
class LaunchNumbers {
 public:
  // `body` is the kernel's; numbers are places in `values`, operands before their users.
  LaunchNumbers(const Module& module, RegionId body, std::vector<LaunchValue>& values)
      : module_(module), body_(body), values_(values) {}

  // Nothing when the value depends on anything else.
  std::optional<uint32_t> number(ValueId value);

 private:
  bool is_pure_scalar(OpId op) const;
  std::vector<ValueId> operands_of(OpId op, ValueId result) const;
  uint32_t add(LaunchValue value);
  std::optional<uint32_t> add_leaf(ValueId value);
  std::optional<uint32_t> add_length(OpId op);
  std::optional<uint32_t> add_operation(OpId op, ValueId result);

  const Module& module_;
  const RegionId body_;
  std::vector<LaunchValue>& values_;
  std::unordered_map<uint32_t, std::optional<uint32_t>> numbers_;
};

using LaunchResults = std::vector<std::optional<ScalarValue>>;

// The values of one launch, by number; nothing where an operation has no defined result.
void evaluate_launch(const std::vector<LaunchValue>& values, std::span<const Argument> arguments,
                     LaunchResults& results);

}  // namespace loom
