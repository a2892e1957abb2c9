#include "loom/target/llvm/exact.h"

#include <algorithm>
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

std::optional<uint64_t> ExactValues::upper_bound(const Module& module, ValueId value) const {
  const IntFacts known = facts(module, value);
  const auto found = facts_.find(value.index());
  if ((found == facts_.end() && !exact(value)) || known.empty() || !known.non_negative()) {
    return std::nullopt;
  }
  return static_cast<uint64_t>(known.hi);
}

IntFacts ExactValues::facts(const Module& module, ValueId value) const {
  if (const auto known = exact(value)) {
    return IntFacts::exactly(known->kind == ScalarKind::I1 ? static_cast<int64_t>(known->bits)
                                                           : as_signed(*known));
  }
  const auto found = facts_.find(value.index());
  if (found != facts_.end()) return found->second;
  const Type& type = module.types[module.type_of(value)];
  return IntFacts::of(IntDomain::of(type.is_scalar() ? type.element : ScalarKind::Index));
}

// Gives `holders[i]` what is known of `subjects[i]` and what the predicates add to it.
void ExactValues::assume(const Module& module, std::span<const Predicate> predicates,
                         std::span<const ValueId> subjects, std::span<const ValueId> holders) {
  std::vector<IntFacts> known;
  for (const ValueId subject : subjects) known.push_back(facts(module, subject));
  for (const Predicate& predicate : predicates) {
    IntFacts args[3];
    for (unsigned i = 0; i < predicate.arity(); ++i) {
      const PredicateArg& arg = predicate.args[i];
      args[i] = arg.is_value() ? facts(module, arg.value) : IntFacts::exactly(arg.literal);
    }
    const auto subject = std::find(subjects.begin(), subjects.end(), predicate.args[0].value);
    if (subject == subjects.end()) continue;
    IntFacts& target = known[static_cast<size_t>(subject - subjects.begin())];
    args[0] = target;
    refine(predicate.kind, args);
    target = args[0];
  }
  for (size_t i = 0; i < holders.size(); ++i) {
    if (is_float(module.types[module.type_of(holders[i])].element)) continue;
    facts_.insert_or_assign(holders[i].index(), known[i]);
  }
}

void ExactValues::assume_contract(const Module& module, std::span<const Predicate> predicates,
                                  std::span<const ValueId> arguments) {
  std::vector<ValueId> scalars;
  for (const ValueId argument : arguments) {
    if (module.types[module.type_of(argument)].is_scalar()) scalars.push_back(argument);
  }
  if (!predicates.empty()) assume(module, predicates, scalars, scalars);
}

void ExactValues::visit_assume(const Module& module, OpId op) {
  const unsigned slot = module.op(op).kind == IndexAssume ? attr_slot(IndexAssume, "predicates")
                                                          : attr_slot(ScalarAssume, "predicates");
  const auto operands = module.operands(op);
  std::vector<ValueId> results;
  for (unsigned i = 0; i < module.op(op).result_count; ++i) {
    results.push_back(module.result(op, i));
    if (const auto known = exact(operands[i])) exact_[results[i].index()] = *known;
  }
  assume(module, module.attr(op, slot).predicates, operands, results);
}

// The address operations that sizes are computed with.
void ExactValues::visit_range(const Module& module, OpId op) {
  const auto of = [&](unsigned i) { return facts(module, module.operand(op, i)); };
  const ValueId result = module.result(op);
  const IntDomain domain = IntDomain::of(module.types[module.type_of(result)].element);
  IntFacts known;
  switch (module.op(op).kind) {
    case IndexAdd:
      known = facts::add(of(0), of(1), domain);
      break;
    case IndexSub:
      known = facts::sub(of(0), of(1), domain);
      break;
    case IndexMul:
    case IndexScale:
      known = facts::mul(of(0), of(1), domain);
      break;
    case IndexMadd:
      known = facts::add(facts::mul(of(0), of(1), domain), of(2), domain);
      break;
    case IndexDiv:
      known = facts::div(of(0), of(1));
      break;
    case IndexRem:
      known = facts::rem(of(0), of(1));
      break;
    case IndexMin:
      known = facts::min_signed(of(0), of(1));
      break;
    case IndexMax:
      known = facts::max_signed(of(0), of(1));
      break;
    case IndexCast:
      // From a payload the sign is read differently from case to case.
      if (!is_address(module.types[module.type_of(module.operand(op, 0))].element)) return;
      known = meet(of(0), IntFacts::of(domain));
      break;
    default:
      return;
  }
  if (!known.is_trivial(domain)) facts_.insert_or_assign(result.index(), known);
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
    if (!known) return visit_range(module, op);
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
