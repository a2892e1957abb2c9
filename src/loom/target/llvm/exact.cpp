#include "loom/target/llvm/exact.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "loom/dialect/eval.h"
#include "loom/dialect/op_info.h"
#include "loom/ir/walk.h"
#include "loom/target/llvm/plan.h"

namespace loom {
namespace {

using enum OpKind;

bool is_constant(OpKind kind) { return kind == IndexConstant || kind == ScalarConstant; }
bool is_assume(OpKind kind) { return kind == IndexAssume || kind == ScalarAssume; }

}  // namespace

std::optional<ScalarValue> ExactValues::exact(ValueId value) const {
  const auto found = exact_.find(value.index());
  return found == exact_.end() ? std::nullopt : std::optional(found->second);
}

std::optional<uint64_t> ExactValues::upper_bound(ValueId value) const {
  if (const auto known = exact(value)) {
    if (as_signed(*known) < 0) return std::nullopt;
    return known->bits;
  }
  const auto found = limits_.find(value.index());
  if (found == limits_.end() || found->second < 0) return std::nullopt;
  return static_cast<uint64_t>(found->second);
}

void ExactValues::bound(ValueId value, int64_t limit) {
  const auto [place, fresh] = limits_.try_emplace(value.index(), limit);
  if (!fresh) place->second = std::min(place->second, limit);
}

void ExactValues::assume(std::span<const Predicate> predicates, std::span<const ValueId> subjects,
                         std::span<const ValueId> holders) {
  for (const Predicate& predicate : predicates) {
    if (!predicate.args[0].is_value() || predicate.arity() < 2) continue;
    const auto subject = std::find(subjects.begin(), subjects.end(), predicate.args[0].value);
    if (subject == subjects.end()) continue;
    const ValueId holder = holders[static_cast<size_t>(subject - subjects.begin())];
    const PredicateArg& limit = predicate.args[predicate.kind == PredicateKind::Range ? 2 : 1];
    if (limit.is_value()) continue;
    switch (predicate.kind) {
      case PredicateKind::Lt:
        if (limit.literal != std::numeric_limits<int64_t>::min()) bound(holder, limit.literal - 1);
        break;
      case PredicateKind::Eq:
      case PredicateKind::Le:
      case PredicateKind::Max:
      case PredicateKind::Range:
        bound(holder, limit.literal);
        break;
      default:
        break;
    }
  }
}

void ExactValues::visit_assume(const Module& module, OpId op) {
  const unsigned slot = module.op(op).kind == IndexAssume ? attr_slot(IndexAssume, "predicates")
                                                          : attr_slot(ScalarAssume, "predicates");
  const auto operands = module.operands(op);
  std::vector<ValueId> results;
  for (unsigned i = 0; i < module.op(op).result_count; ++i) {
    results.push_back(module.result(op, i));
    if (const auto known = exact(operands[i])) exact_[results[i].index()] = *known;
    const auto limit = limits_.find(operands[i].index());
    if (limit != limits_.end()) bound(results[i], int64_t{limit->second});
  }
  assume(module.attr(op, slot).predicates, operands, results);
}

void ExactValues::visit_bound(const Module& module, OpId op) {
  const OpKind kind = module.op(op).kind;
  const auto limit_of = [&](unsigned i) { return upper_bound(module.operand(op, i)); };
  const ValueId result = module.result(op);
  if (kind == IndexMin) {
    for (unsigned i = 0; i < 2; ++i) {
      if (const auto limit = limit_of(i)) bound(result, static_cast<int64_t>(*limit));
    }
  } else if (kind == IndexCast) {
    const Type& from = module.types[module.type_of(module.operand(op, 0))];
    if (is_address(from.element)) {
      if (const auto limit = limit_of(0)) bound(result, static_cast<int64_t>(*limit));
    }
  }
}

void ExactValues::visit(const Module& module, OpId op) {
  const OpKind kind = module.op(op).kind;
  if (is_assume(kind)) return visit_assume(module, op);
  if (module.op(op).result_count != 1) return;
  const Type& type = module.types[module.type_of(module.result(op))];
  if (!type.is_scalar()) return;
  const uint32_t result = module.result(op).index();
  if (is_constant(kind)) {
    const unsigned slot = kind == IndexConstant ? attr_slot(IndexConstant, "value")
                                                : attr_slot(ScalarConstant, "value");
    if (const auto value = from_literal(module.attr(op, slot), type.element))
      exact_[result] = *value;
    return;
  }
  if (kind == ConfigGet) {
    if (const auto value = config_value(module, op)) exact_[result] = *value;
    return;
  }
  const auto operands = module.operands(op);
  std::array<ScalarValue, 3> values;
  if (operands.empty() || operands.size() > values.size()) return;
  for (size_t i = 0; i < operands.size(); ++i) {
    const auto known = exact(operands[i]);
    if (!known) return visit_bound(module, op);
    values[i] = *known;
  }
  ScalarValue value;
  if (evaluate(kind, eval_attrs(module, op), std::span(values).first(operands.size()), type.element,
               value) == EvalStatus::Ok) {
    exact_[result] = value;
  }
}

std::array<std::optional<uint64_t>, 3> exact_workgroup_size(const Module& module, OpId kernel) {
  std::array<std::optional<uint64_t>, 3> size;
  const RegionId config = module.op_region(kernel, region_slot(KernelDef, "config"));
  ExactValues values;
  OpId last;
  for_each_op(module, config, [&](OpId op) {
    values.visit(module, op);
    last = op;
  });
  if (!last.valid() || module.op(last).kind != KernelLaunchConfig) return size;
  const auto sizes =
      operand_group(module, last, operand_slot(KernelLaunchConfig, "workgroup_size"));
  for (size_t axis = 0; axis < size.size(); ++axis) {
    if (axis >= sizes.size()) {
      size[axis] = 1;
      continue;
    }
    const auto known = values.exact(sizes[axis]);
    if (known && known->bits <= UINT32_MAX) size[axis] = known->bits;
  }
  return size;
}

}  // namespace loom
