// Random straight-line programs of pure index and scalar operations, and their evaluation.
#pragma once

#include <algorithm>
#include <limits>
#include <optional>
#include <random>
#include <vector>

#include "loom/dialect/eval.h"
#include "loom/dialect/op_info.h"
#include "loom/ir/module.h"

namespace loom {

// A function `(args...) -> (results...)` with every value that the program computes returned, so
// that no pass may drop one. Operand kinds follow the rows of the dialect tables.
class RandomProgram {
 public:
  RandomProgram(Module& module, uint32_t seed) : module_(module), random_(seed) {}

  OpId make(unsigned operations) {
    function_ = module_.create({.kind = OpKind::FuncDef,
                                .attrs = std::vector<AttrId>(op_info(OpKind::FuncDef).attrs.size()),
                                .regions = 2});
    const StringId name = module_.strings.intern("random");
    module_.set_attr(function_, attr_slot(OpKind::FuncDef, "name"),
                     module_.attrs.intern(Attr::symbol(name)));
    module_.append(module_.body(), function_);
    module_.define_symbol(name, function_);
    body_ = module_.op_region(function_, 0);
    module_.region(body_).has_body = true;
    for (ScalarKind kind : kKinds) {
      for (int i = 0; i < 2; ++i) values_.push_back(module_.add_arg(body_, type(kind), {}));
    }
    while (operations != 0) operations -= add_operation() ? 1 : 0;
    const std::vector<ValueId> results(values_.begin() + kArguments, values_.end());
    const auto count = static_cast<uint32_t>(results.size());
    const OpId end =
        module_.create({.kind = OpKind::FuncReturn, .operands = results, .groups = {&count, 1}});
    module_.append(body_, end);
    for (ValueId value : results) {
      module_.add_arg(module_.op_region(function_, 1), module_.type_of(value), {});
    }
    return function_;
  }

  static constexpr ScalarKind kKinds[] = {ScalarKind::Index, ScalarKind::Offset, ScalarKind::I1,
                                          ScalarKind::I8,    ScalarKind::I64,    ScalarKind::I32,
                                          ScalarKind::F32};
  static constexpr size_t kArguments = 2 * std::size(kKinds);

 private:
  static TypeId type(ScalarKind kind) { return TypeStore::scalar(kind); }
  uint32_t roll(uint32_t below) { return static_cast<uint32_t>(random_() % below); }

  std::optional<ValueId> pick(const Constraint& constraint, TypeId wanted) {
    std::vector<ValueId> fit;
    for (ValueId value : values_) {
      const TypeId t = module_.type_of(value);
      if (constraint.accepts(module_.types[t]) && (!wanted.valid() || t == wanted)) {
        fit.push_back(value);
      }
    }
    if (fit.empty()) return std::nullopt;
    return fit[roll(static_cast<uint32_t>(fit.size()))];
  }

  bool add_constant() {
    const ScalarKind kind = kKinds[roll(std::size(kKinds))];
    const int64_t numbers[] = {
        0, 1, -1, 2, 3, 7, 8, -8, 64, 127, -128, 100, std::numeric_limits<int64_t>::max()};
    const int64_t n = numbers[roll(std::size(numbers))];
    const double reals[] = {0.0, 1.0, -1.0, 0.5, 3.25, -2.0};
    ScalarValue value = from_bits(kind, static_cast<uint64_t>(n));
    if (kind == ScalarKind::Offset && n < 0) return false;
    if (is_float(kind)) value = from_double(kind, reals[roll(std::size(reals))]);
    const AttrId literal = module_.attrs.intern(to_literal(value));
    const TypeId result = type(kind);
    append({.kind = is_address(kind) ? OpKind::IndexConstant : OpKind::ScalarConstant,
            .results = {&result, 1},
            .attrs = {&literal, 1}});
    return true;
  }

  bool add_operation() {
    if (roll(5) == 0) return add_constant();
    const auto kind = static_cast<OpKind>(roll(kOpKindCount));
    const OpInfo& info = op_info(kind);
    const bool known =
        info.dialect == "index" || info.dialect == "scalar" || kind == OpKind::ScfSelect;
    if (!known || info.results.size() != 1) return false;
    if (info.operands.empty() || info.has_groups || info.effect != Effect::Pure) {
      return false;
    }
    std::vector<ValueId> operands;
    const bool one_type = info.has(trait::SameType | trait::OperandsSameType);
    for (const OperandSpec& spec : info.operands) {
      const bool tied =
          (one_type && !operands.empty()) || (kind == OpKind::ScfSelect && operands.size() == 2);
      const auto value = pick(*spec.constraint, tied ? module_.type_of(operands.back()) : TypeId());
      if (!value) return false;
      operands.push_back(*value);
    }
    const auto result = result_type(info, operands);
    if (!result) return false;
    const auto bits_of = [&](TypeId type) { return scalar_bits(module_.types[type].element); };
    const uint32_t bits = operands.empty() ? 1 : bits_of(module_.type_of(operands[0]));
    const uint32_t width = 1 + roll(std::min(bits, bits_of(*result)));  // of a bit field
    std::vector<AttrId> attrs;
    for (const AttrSpec& spec : info.attrs) {
      if (spec.form == AttrForm::Enum && spec.enum_id == EnumId::GeluForm) return false;
      if (spec.form == AttrForm::Integer && !spec.optional) return false;
      AttrId attr;
      if (spec.form == AttrForm::Enum) {
        const auto cases = static_cast<uint32_t>(enum_info(spec.enum_id).cases.size());
        attr = module_.attrs.intern(Attr::enumeration(roll(cases)));
      }
      if (spec.form == AttrForm::Integer) {
        const uint32_t number = spec.name == "width" ? width : roll(bits - width + 1);
        attr = module_.attrs.intern(Attr::integer(number));
      }
      // Fast-math flags would allow other results.
      if (spec.form == AttrForm::Flags && spec.flags == FlagSetId::Overflow && roll(4) == 0) {
        attr = module_.attrs.intern(Attr::flags(1 + roll(3)));
      }
      attrs.push_back(attr);
    }
    append({.kind = kind, .operands = operands, .results = {&*result, 1}, .attrs = attrs});
    return true;
  }

  // Follows the widths that the cast operations ask for.
  std::optional<TypeId> result_type(const OpInfo& info, const std::vector<ValueId>& operands) {
    const ResultSpec& spec = info.results[0];
    if (spec.same_as >= 0) return module_.type_of(operands[static_cast<size_t>(spec.same_as)]);
    if (const auto only = spec.constraint->only_type(module_.types)) return only;
    const ScalarKind to = kKinds[roll(std::size(kKinds))];
    const ScalarKind from = module_.types[module_.type_of(operands[0])].element;
    if (!spec.constraint->accepts(module_.types[type(to)]) || from == to) return std::nullopt;
    const unsigned old_bits = scalar_bits(from), new_bits = scalar_bits(to);
    switch (info.kind) {
      case OpKind::IndexCast:
        return is_address(from) || is_address(to) ? std::optional(type(to)) : std::nullopt;
      case OpKind::ScalarExtSI:
      case OpKind::ScalarExtUI:
      case OpKind::ScalarExtF:
        return new_bits > old_bits ? std::optional(type(to)) : std::nullopt;
      case OpKind::ScalarTruncI:
      case OpKind::ScalarFPTrunc:
        return new_bits < old_bits ? std::optional(type(to)) : std::nullopt;
      case OpKind::ScalarBitcast:
        return new_bits == old_bits ? std::optional(type(to)) : std::nullopt;
      default:
        return type(to);
    }
  }

  void append(const Module::NewOp& op) {
    const OpId id = module_.create(op);
    module_.append(body_, id);
    values_.push_back(module_.result(id));
  }

  Module& module_;
  std::mt19937 random_;
  OpId function_;
  RegionId body_;
  std::vector<ValueId> values_;
};

// What the function returns for the arguments. A result is absent when the program has no defined
// value for it: the operation, or one that it depends on, violates its contract.
inline std::vector<std::optional<ScalarValue>> evaluate_program(
    const Module& module, OpId function, const std::vector<ScalarValue>& arguments) {
  std::vector<std::optional<ScalarValue>> values(module.value_count());
  const RegionId body = module.op_region(function, 0);
  const auto args = module.args(body);
  for (size_t i = 0; i < args.size(); ++i) values[args[i].index()] = arguments[i];
  std::vector<std::optional<ScalarValue>> results;
  for (OpId op = module.region(body).first; op.valid(); op = module.op(op).next) {
    const OpKind kind = module.op(op).kind;
    if (kind == OpKind::FuncReturn) {
      for (ValueId value : module.operands(op)) results.push_back(values[value.index()]);
      break;
    }
    const ValueId result = module.result(op);
    const ScalarKind element = module.types[module.type_of(result)].element;
    if (kind == OpKind::IndexConstant || kind == OpKind::ScalarConstant) {
      values[result.index()] = from_literal(module.attr(op, 0), element);
      continue;
    }
    std::vector<ScalarValue> operands;
    for (ValueId value : module.operands(op)) {
      if (values[value.index()]) operands.push_back(*values[value.index()]);
    }
    if (operands.size() != module.operands(op).size()) continue;
    ScalarValue value;
    if (evaluate(kind, eval_attrs(module, op), operands, element, value) != EvalStatus::Ok)
      continue;
    // A bitcast can make an offset that no offset is: they are not negative.
    if (element == ScalarKind::Offset && as_signed(value) < 0) continue;
    values[result.index()] = value;
  }
  return results;
}

}  // namespace loom
