#include "loom/command/launch_values.h"

#include <algorithm>
#include <array>

#include "loom/dialect/op_info.h"
#include "loom/pass/constants.h"

namespace loom {
namespace {

bool is_assume(OpKind kind) { return kind == OpKind::IndexAssume || kind == OpKind::ScalarAssume; }

}  // namespace

ValueId promised_root(const Module& module, ValueId value) {
  for (;;) {
    const OpId op = module.defining_op(value);
    if (!op.valid()) return value;
    const OpKind kind = module.op(op).kind;
    if (kind != OpKind::BufferAssumeNoalias && kind != OpKind::BufferAssumeAlignment &&
        kind != OpKind::BufferAssumeMemorySpace) {
      return value;
    }
    value = module.operand(op, module.value(value).index);
  }
}

// Operands come first, on an explicit stack.
std::optional<uint32_t> LaunchNumbers::number(ValueId value) {
  std::vector<ValueId> open = {value};
  while (!open.empty()) {
    const ValueId top = open.back();
    if (numbers_.contains(top.index())) {
      open.pop_back();
      continue;
    }
    const OpId op = module_.defining_op(top);
    const bool computed = op.valid() && !exact_value(module_, top);
    const size_t depth = open.size();
    if (computed && is_pure_scalar(op)) {
      for (const ValueId operand : operands_of(op, top)) {
        if (!numbers_.contains(operand.index())) open.push_back(operand);
      }
    }
    if (open.size() > depth) continue;
    numbers_[top.index()] = computed ? add_operation(op, top) : add_leaf(top);
    open.pop_back();
  }
  return numbers_[value.index()];
}

bool LaunchNumbers::is_pure_scalar(OpId op) const {
  if (is_assume(module_.op(op).kind)) return true;
  if (module_.op(op).result_count != 1 || module_.op(op).region_count != 0) return false;
  // Constants are leaves; what else takes no operand asks for something that the launch's scalars
  // do not say.
  if (module_.operands(op).empty() || module_.operands(op).size() > 3) return false;
  return std::ranges::all_of(module_.operands(op), [&](ValueId operand) {
    return module_.types.is_scalar(module_.type_of(operand));
  });
}

// An assume passes on the operand of the same place.
std::vector<ValueId> LaunchNumbers::operands_of(OpId op, ValueId result) const {
  if (is_assume(module_.op(op).kind)) return {module_.operand(op, module_.value(result).index)};
  return {module_.operands(op).begin(), module_.operands(op).end()};
}

uint32_t LaunchNumbers::add(LaunchValue value) {
  values_.push_back(std::move(value));
  return static_cast<uint32_t>(values_.size() - 1);
}

std::optional<uint32_t> LaunchNumbers::add_leaf(ValueId value) {
  if (const auto exact = exact_value(module_, value)) {
    LaunchValue constant;
    constant.constant = *exact;
    return add(std::move(constant));
  }
  const Value& v = module_.value(value);
  if (v.kind != ValueKind::Argument || v.owner != body_.index() ||
      !module_.types.is_scalar(module_.type_of(value))) {
    return std::nullopt;
  }
  LaunchValue argument;
  argument.kind = LaunchValue::Kind::Argument;
  argument.constant.kind = module_.types[module_.type_of(value)].element;
  argument.argument = v.index;
  return add(std::move(argument));
}

std::optional<uint32_t> LaunchNumbers::add_length(OpId op) {
  const Value& root = module_.value(promised_root(module_, module_.operand(op, 0)));
  if (root.kind != ValueKind::Argument || root.owner != body_.index()) return std::nullopt;
  LaunchValue length;
  length.kind = LaunchValue::Kind::Length;
  length.constant.kind = ScalarKind::Offset;
  length.argument = root.index;
  return add(std::move(length));
}

std::optional<uint32_t> LaunchNumbers::add_operation(OpId op, ValueId result) {
  if (module_.op(op).kind == OpKind::BufferLength) return add_length(op);
  if (!is_pure_scalar(op)) return std::nullopt;
  LaunchValue operation;
  for (const ValueId operand : operands_of(op, result)) {
    const std::optional<uint32_t> number = numbers_[operand.index()];
    if (!number) return std::nullopt;
    operation.operands.push_back(*number);
  }
  if (is_assume(module_.op(op).kind)) return operation.operands[0];
  if (!module_.types.is_scalar(module_.type_of(result))) return std::nullopt;
  operation.kind = LaunchValue::Kind::Operation;
  operation.constant.kind = module_.types[module_.type_of(result)].element;
  operation.op = module_.op(op).kind;
  operation.attrs = eval_attrs(module_, op);
  return add(std::move(operation));
}

void evaluate_launch(const std::vector<LaunchValue>& values, std::span<const Argument> arguments,
                     LaunchResults& results) {
  results.assign(values.size(), std::nullopt);
  for (size_t i = 0; i < values.size(); ++i) {
    const LaunchValue& value = values[i];
    if (value.kind == LaunchValue::Kind::Constant) {
      results[i] = value.constant;
    } else if (value.kind != LaunchValue::Kind::Operation) {
      if (value.argument >= arguments.size()) continue;
      const Argument& argument = arguments[value.argument];
      const bool of_buffer = value.kind == LaunchValue::Kind::Length;
      if (of_buffer != (argument.kind == Argument::Kind::Buffer)) continue;
      if (of_buffer && argument.buffer.length == BufferRef::kWholeBuffer) continue;
      results[i] =
          from_bits(value.constant.kind, of_buffer ? argument.buffer.length : argument.value);
    } else {
      std::array<ScalarValue, 3> operands;
      bool known = true;
      for (size_t k = 0; k < value.operands.size(); ++k) {
        const auto& operand = results[value.operands[k]];
        known = known && operand.has_value();
        if (operand) operands[k] = *operand;
      }
      ScalarValue result;
      if (known && evaluate(value.op, value.attrs, {operands.data(), value.operands.size()},
                            value.constant.kind, result) == EvalStatus::Ok) {
        results[i] = result;
      }
    }
  }
}

}  // namespace loom
