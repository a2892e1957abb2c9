#include "loom/command/request.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "loom/bytecode/bytecode.h"
#include "loom/command/kernel_copy.h"
#include "loom/dialect/export_name.h"
#include "loom/dialect/hooks.h"
#include "loom/dialect/numeric.h"
#include "loom/dialect/op_info.h"
#include "loom/ir/walk.h"
#include "loom/pass/canonicalize.h"
#include "loom/pass/expand_templates.h"
#include "loom/pass/pass_context.h"

namespace loom {
namespace {

using enum OpKind;

void fix_workgroup_size(Module& request, OpId kernel, const std::array<uint32_t, 3>& size) {
  const RegionId config = request.op_region(kernel, region_slot(OpKind::KernelDef, "config"));
  const OpId terminator = request.region(config).last;
  std::vector<ValueId> operands(request.operands(terminator).begin(),
                                request.operands(terminator).end());
  const auto sizes = request.group_sizes(terminator);
  const std::vector<uint32_t> groups(sizes.begin(), sizes.end());
  const TypeId index = TypeStore::scalar(ScalarKind::Index);
  for (unsigned axis = 0; axis < 3; ++axis) {
    const AttrId value = request.attrs.intern(Attr::integer(size[axis]));
    const OpId constant = request.create({.kind = OpKind::IndexConstant,
                                          .results = {&index, 1},
                                          .attrs = {&value, 1},
                                          .location = request.location(terminator)});
    request.insert_before(terminator, constant);
    operands[groups[0] + axis] = request.result(constant);
  }
  request.set_operands(terminator, operands, groups);
}

bool holds_templates(const Module& module) {
  bool found = false;
  for_each_op(module, module.body(),
              [&](OpId symbol) { found |= op_info(module.op(symbol).kind).dialect == "template"; });
  return found;
}

ValueId constant_before(Module& request, OpId op, const ScalarValue& value) {
  const bool address = is_address(value.kind);
  const TypeId type = TypeStore::scalar(value.kind);
  const AttrId attr = request.attrs.intern(to_literal(value));
  const OpId constant = request.create({.kind = address ? IndexConstant : ScalarConstant,
                                        .results = {&type, 1},
                                        .attrs = {&attr, 1},
                                        .location = request.location(op)});
  request.insert_before(op, constant);
  return request.result(constant);
}

void fold_decisions(Module& request, OpId kernel, const KernelDecisions& decisions,
                    std::span<const ScalarValue> folded) {
  std::vector<OpId> ops;
  for_each_nested(request, kernel, [&](OpId op) { ops.push_back(op); });
  for (size_t i = 0; i < folded.size(); ++i) {
    const KernelDecisions::Use& use = decisions.uses[i];
    request.set_operand(ops[use.op], use.operand, constant_before(request, ops[use.op], folded[i]));
  }
}

std::vector<ValueId> launch_arguments(const Module& request, OpId kernel) {
  const auto args = request.args(request.op_region(kernel, region_slot(KernelDef, "body")));
  return {args.begin(), args.end()};
}

// Shared integers become `eq` in the kernel's contract. Where implementations are chosen by them,
// so do the bounds and the divisor of the other integers, and which kinds of number floats are.
bool state_scalars(Module& request, OpId kernel, const RequestClass& of, bool bounds) {
  const std::vector<ValueId> args = launch_arguments(request, kernel);
  const auto stated = where_predicates(request, kernel);
  std::vector<Predicate> all(stated.begin(), stated.end());
  const auto add = [&](const Predicate& predicate) {
    if (std::ranges::find(all, predicate) == all.end()) all.push_back(predicate);
  };
  const auto literal = [](int64_t value) { return PredicateArg::of(value); };
  for (size_t i = 0; i < of.arguments.size() && i < args.size(); ++i) {
    const Type& type = request.types[request.type_of(args[i])];
    if (type.kind != TypeKind::Scalar) continue;
    const PredicateArg arg = PredicateArg::of(args[i]);
    const SharedArgument& shared = of.arguments[i];
    if (is_float(type.element)) {
      if (!bounds || shared.floats.empty()) continue;
      const bool number = !shared.floats.may(FloatFacts::kNan);
      const bool bounded = !shared.floats.may(FloatFacts::kInf);
      if (number && bounded) {
        add({PredicateKind::Finite, {arg}});
      } else if (number || bounded) {
        add({number ? PredicateKind::NotNan : PredicateKind::NotInf, {arg}});
      }
      continue;
    }
    const IntFacts& facts = shared.facts;
    if (const auto exact = facts.exact()) {
      add({PredicateKind::Eq, {arg, literal(*exact)}});
    } else if (bounds) {
      add({PredicateKind::Range, {arg, literal(facts.lo), literal(facts.hi)}});
      if (facts.divisor > 1) {
        add({PredicateKind::Mul, {arg, literal(static_cast<int64_t>(facts.divisor))}});
      }
    }
  }
  if (all.size() == stated.size()) return false;
  const int slot = op_info(KernelDef).where_slot;
  request.set_attr(kernel, static_cast<unsigned>(slot),
                   request.attrs.intern(Attr::predicate_list(all)));
  return true;
}

// No predicate says that a float equals a number, so a float that all sites share stands in the
// body in place of the argument. A NaN has no literal that keeps its bits.
bool fold_floats(Module& request, OpId kernel, const RequestClass& of) {
  const std::vector<ValueId> args = launch_arguments(request, kernel);
  bool folded = false;
  for (size_t i = 0; i < of.arguments.size() && i < args.size(); ++i) {
    const Type& type = request.types[request.type_of(args[i])];
    if (type.kind != TypeKind::Scalar || !is_float(type.element)) continue;
    if (!of.arguments[i].bits) continue;
    const ScalarValue value = from_bits(type.element, *of.arguments[i].bits);
    if (is_nan(value)) continue;
    std::vector<std::pair<OpId, uint32_t>> uses;
    for_each_nested(request, kernel, [&](OpId user) {
      for (uint32_t k = 0; k < request.operands(user).size(); ++k) {
        if (request.operand(user, k) == args[i]) uses.emplace_back(user, k);
      }
    });
    if (uses.empty()) continue;
    const RegionId body = request.op_region(kernel, region_slot(KernelDef, "body"));
    const ValueId constant = constant_before(request, request.region(body).first, value);
    for (const auto& [user, operand] : uses) request.set_operand(user, operand, constant);
    folded = true;
  }
  return folded;
}

// What all sites say of the storage of a launch argument stands in the kernel's contract. True when
// an operation of the kernel asks for that.
bool state_storage(Module& request, OpId kernel, const RequestClass& of) {
  const std::vector<ValueId> args = launch_arguments(request, kernel);
  std::vector<int64_t> fixed;
  std::vector<int64_t> lengths(args.size(), 0);
  std::vector<int64_t> alignments(args.size(), 1);
  bool long_enough = false;
  bool aligned = false;
  for (size_t i = 0; i < of.arguments.size() && i < args.size(); ++i) {
    if (request.types.is_scalar(request.type_of(args[i]))) continue;
    const SharedArgument& shared = of.arguments[i];
    if (shared.fixed) fixed.push_back(static_cast<int64_t>(i));
    lengths[i] = static_cast<int64_t>(shared.length.value_or(0));
    alignments[i] = static_cast<int64_t>(shared.alignment);
    long_enough = long_enough || lengths[i] != 0;
    aligned = aligned || alignments[i] > 1;
  }
  const auto state = [&](unsigned slot, const std::vector<int64_t>& list) {
    request.set_attr(kernel, slot, request.attrs.intern(Attr::int_list(list)));
  };
  if (!fixed.empty()) state(attr_slot(KernelDef, "readonly"), fixed);
  if (long_enough) state(attr_slot(KernelDef, "lengths"), lengths);
  if (aligned) state(attr_slot(KernelDef, "alignments"), alignments);
  bool asks = false;
  for_each_nested(request, kernel, [&](OpId op) { asks |= request.op(op).kind == BufferLength; });
  return asks && long_enough;
}

}  // namespace

std::optional<KernelRequest> make_request(PassContext& of_module, const RequestClass& of,
                                          const KernelDecisions& decisions, bool fixed_size,
                                          bool located) {
  const Module& module = of_module.module();
  Module request = rooted_copy(module, of.kernel);
  OpId copy = request.region(request.body()).first;
  PassContext context(request, of_module.diagnostics(), &of_module.workspace());
  if (decisions.entered && !enter_functions(context, copy)) return std::nullopt;
  request.set_attr(copy, attr_slot(KernelDef, "retain"), request.attrs.intern(Attr::unit()));
  fold_decisions(request, copy, decisions, of.folded);
  bool changed = state_scalars(request, copy, of, !decisions.conditions.empty());
  changed |= fold_floats(request, copy, of);
  changed |= state_storage(request, copy, of);
  changed |= !of.folded.empty();
  if (!fixed_size) fix_workgroup_size(request, copy, of.size);
  if (changed && !canonicalize(context, copy)) return std::nullopt;
  const bool templates = holds_templates(request);
  if (templates) {
    const SelectOptions early{.final = false, .target = {}, .format = {}};
    if (!expand_kernels(context, {&copy, 1}, early)) return std::nullopt;
  }
  // What is not reached any more is not part of the request.
  if (templates || decisions.entered) {
    request = rooted_copy(request, copy);
    copy = request.region(request.body()).first;
  }
  restore_private_names(request);
  return KernelRequest{
      .ordinal = 0,
      .symbol = std::string(symbol_text(module, of.kernel)),
      .export_name = std::string(export_name(module, of.kernel)),
      .bytecode = write_bytecode(request, {.strip = true, .keep_check_places = true}),
      .located = located ? write_bytecode(request) : std::string()};
}

}  // namespace loom
