// check.oracle.call: the interpreter, lane by lane or over storage, or another program.
#include <fmt/format.h>

#include <algorithm>

#include "loom/check/arrays.h"
#include "loom/check/case_host.h"
#include "loom/check/external_oracle.h"
#include "loom/dialect/op_info.h"

namespace loom::check {

using enum OpKind;

bool SampleHost::oracle(OpId op, std::span<const CaseValue> operands,
                        std::vector<CaseValue>& results) {
  const auto name = oracle_name(module_, op, context_.device);
  if (!name) return unplannable(op, name.error());
  if (!name->empty()) return call_external(op, *name, operands, results);
  const OpId callee = module_.symbol(symbol_ref(module_, op, attr_slot(CheckOracleCall, "callee")));
  if (!callee.valid() || module_.op(callee).kind != FuncDef) {
    return unplannable(op, "the function of the oracle has no body");
  }
  const auto formals = module_.args(module_.op_region(callee, region_slot(FuncDef, "body")));
  const bool by_lane = std::ranges::all_of(
      formals, [&](ValueId formal) { return module_.types.is_scalar(module_.type_of(formal)); });
  return by_lane ? call_by_lane(op, callee, operands, results)
                 : call_by_storage(op, callee, operands, results);
}

bool SampleHost::call_by_lane(OpId op, OpId callee, std::span<const CaseValue> operands,
                              std::vector<CaseValue>& results) {
  const auto formals = module_.args(module_.op_region(callee, region_slot(FuncDef, "body")));
  const auto named = module_.args(module_.op_region(callee, region_slot(FuncDef, "results")));
  const std::string_view name = symbol_text(module_, callee);
  if (formals.size() != operands.size() || named.size() != results.size()) {
    return unplannable(op, fmt::format("'@{}' takes {} values and returns {}", name, formals.size(),
                                       named.size()));
  }
  std::optional<uint64_t> count;
  std::vector<Elements> inputs;
  for (size_t i = 0; i < operands.size(); ++i) {
    const ValueId operand = module_.operand(op, static_cast<unsigned>(i));
    const Type& type = type_of(operand);
    if (type.element != type_of(formals[i]).element) {
      return unplannable(op, fmt::format("argument {} of '@{}' has another element type", i, name));
    }
    inputs.emplace_back(operands[i], type.element, shape_of(operand));
    if (type.is_scalar()) continue;
    if (count && *count != inputs.back().size()) {
      return unplannable(op, fmt::format("the tensors for '@{}' have different shapes", name));
    }
    count = inputs.back().size();
  }
  std::vector<std::span<std::byte>> made;
  for (size_t r = 0; r < results.size(); ++r) {
    const ValueId value = module_.result(op, static_cast<unsigned>(r));
    const Type& type = type_of(value);
    const bool fits =
        type.element == type_of(named[r]).element && !type.is_scalar() == count.has_value();
    if (!fits) return unplannable(op, fmt::format("result {} of '@{}' has another type", r, name));
    made.emplace_back();
    if (type.is_scalar()) continue;
    const auto taken = take(op, value);
    if (!taken) return false;
    if (element_count(*taken, type.element) != *count) {
      return unplannable(op, fmt::format("result {} of '@{}' has another shape", r, name));
    }
    made.back() = *taken;
    results[r] = *taken;
  }
  std::vector<InterpArgument> arguments(inputs.size());
  for (uint64_t lane = 0; lane < count.value_or(1); ++lane) {
    for (size_t i = 0; i < inputs.size(); ++i) {
      arguments[i] = scalar_argument(inputs[i].at(inputs[i].shape().empty() ? 0 : lane));
    }
    const auto values = run_function(module_, name, arguments, interp_, result_.diagnostics);
    if (!values) return false;
    for (size_t r = 0; r < results.size(); ++r) {
      const ScalarValue value = (*values)[r].at(0);
      if (count) {
        store(made[r], value.kind, lane, value);
      } else {
        results[r] = scalar_argument(value);
      }
    }
  }
  return true;
}

bool SampleHost::call_by_storage(OpId op, OpId callee, std::span<const CaseValue> operands,
                                 std::vector<CaseValue>& results) {
  const std::string_view name = symbol_text(module_, callee);
  std::vector<InterpArgument> arguments;
  for (size_t i = 0; i < operands.size(); ++i) {
    if (const auto* storage = std::get_if<std::span<std::byte>>(&operands[i])) {
      arguments.emplace_back(InterpStorage{
          std::string(module_.name_of(module_.operand(op, static_cast<unsigned>(i)))), *storage});
    } else {
      arguments.emplace_back(std::get<LaneValues>(operands[i]));
    }
  }
  for (size_t r = 0; r < results.size(); ++r) {
    const ValueId value = module_.result(op, static_cast<unsigned>(r));
    if (type_of(value).is_scalar()) {
      return unplannable(op,
                         fmt::format("'@{}' works on storage, so its results are tensors", name));
    }
    const auto taken = take(op, value);
    if (!taken) return false;
    std::ranges::fill(*taken, std::byte{0});
    arguments.emplace_back(InterpStorage{std::string(module_.name_of(value)), *taken});
    results[r] = *taken;
  }
  const auto formals = module_.args(module_.op_region(callee, region_slot(FuncDef, "body")));
  if (formals.size() != arguments.size()) {
    return unplannable(op, fmt::format("'@{}' takes {} arguments; the inputs and one tensor for "
                                       "each result are {}",
                                       name, formals.size(), arguments.size()));
  }
  return run_function(module_, name, arguments, interp_, result_.diagnostics).has_value();
}

bool SampleHost::call_external(OpId op, const std::string& name,
                               std::span<const CaseValue> operands,
                               std::vector<CaseValue>& results) {
  std::vector<OracleInput> inputs;
  for (size_t i = 0; i < operands.size(); ++i) {
    const Type& type = type_of(module_.operand(op, static_cast<unsigned>(i)));
    OracleInput input{array_type(type), {}};
    if (const auto* storage = std::get_if<std::span<std::byte>>(&operands[i])) {
      input.bytes.assign(storage->begin(), storage->end());
    } else {
      input.bytes.resize(scalar_bytes(type.element));
      store(input.bytes, type.element, 0, std::get<LaneValues>(operands[i]).at(0));
    }
    inputs.push_back(std::move(input));
  }
  std::vector<OracleOutput> outputs;
  std::vector<std::vector<std::byte>> scalars(results.size());
  for (size_t r = 0; r < results.size(); ++r) {
    const ValueId value = module_.result(op, static_cast<unsigned>(r));
    const Type& type = type_of(value);
    if (type.is_scalar()) {
      scalars[r].resize(scalar_bytes(type.element));
      outputs.push_back({array_type(type), scalars[r]});
      continue;
    }
    const auto taken = take(op, value);
    if (!taken) return false;
    outputs.push_back({array_type(type), *taken});
    results[r] = *taken;
  }
  const std::string callee(symbol_ref(module_, op, attr_slot(CheckOracleCall, "callee")));
  if (!run_external_oracle(name, context_.oracles.at(name), callee, inputs, outputs,
                           module_.location(op), result_.diagnostics)) {
    unplannable_ = true;
    return false;
  }
  for (size_t r = 0; r < results.size(); ++r) {
    const ScalarKind kind = type_of(module_.result(op, static_cast<unsigned>(r))).element;
    if (!scalars[r].empty()) results[r] = scalar_argument(load(scalars[r], kind, 0));
  }
  return true;
}

}  // namespace loom::check
