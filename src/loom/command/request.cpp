#include "loom/command/request.h"

#include <algorithm>
#include <map>
#include <unordered_set>

#include "loom/bytecode/bytecode.h"
#include "loom/dialect/export_name.h"
#include "loom/dialect/hooks.h"
#include "loom/dialect/numeric.h"
#include "loom/dialect/op_info.h"
#include "loom/ir/clone.h"
#include "loom/ir/walk.h"
#include "loom/pass/canonicalize.h"
#include "loom/pass/pass_context.h"
#include "loom/pass/select_templates.h"

namespace loom {
namespace {

using enum OpKind;

// Symbols that the op's attributes refer to, in slot order.
void append_references(const Module& module, OpId id, std::vector<StringId>& out) {
  const OpInfo& info = op_info(module.op(id).kind);
  for (unsigned slot = 0; slot < info.attrs.size(); ++slot) {
    if (info.attrs[slot].form == AttrForm::Symbol && module.has_attr(id, slot)) {
      out.push_back(module.attr(id, slot).string());
    }
  }
}

// Implementations by family, in module order.
std::map<StringId, std::vector<OpId>> implementations(const Module& module) {
  std::map<StringId, std::vector<OpId>> found;
  for_each_op(module, module.body(), [&](OpId op) {
    const OpKind kind = module.op(op).kind;
    if (kind != OpKind::TemplateDef && kind != OpKind::TemplateUkernel) return;
    found[module.attr(op, attr_slot(OpKind::TemplateDef, "family")).string()].push_back(op);
  });
  return found;
}

// The kernel and what it reaches, in first-reach order. An applied family reaches all of its
// implementations.
std::vector<OpId> closure(const Module& module, OpId kernel) {
  const auto families = implementations(module);
  std::vector<OpId> symbols{kernel};
  std::unordered_set<uint32_t> seen{kernel.index()};
  for (size_t i = 0; i < symbols.size(); ++i) {
    std::vector<StringId> references;
    for_each_nested(module, symbols[i],
                    [&](OpId id) { append_references(module, id, references); });
    append_references(module, OpId(symbols[i]), references);
    for_each_nested(module, symbols[i], [&](OpId id) {
      if (module.op(id).kind != OpKind::TemplateApply) return;
      const auto found = families.find(callee_name(module, id));
      if (found == families.end()) return;
      for (const OpId candidate : found->second) {
        references.push_back(symbol_name(module, candidate));
      }
    });
    for (StringId name : references) {
      const OpId target = module.symbol(name);
      if (target.valid() && seen.insert(target.index()).second) symbols.push_back(target);
    }
  }
  return symbols;
}

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

Module rooted_copy(const Module& module, OpId kernel) {
  Module copy(module.files());
  Cloner cloner(module, copy);
  for (OpId symbol : closure(module, kernel)) {
    const OpId made = cloner.clone(symbol);
    copy.append(copy.body(), made);
    copy.define_symbol(symbol_name(copy, made), made);
  }
  return copy;
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

// Shared integers become `eq` in the kernel's contract. Where implementations are chosen by them,
// so do the bounds and the divisor of the others.
bool state_scalars(Module& request, OpId kernel, const RequestClass& of, bool bounds) {
  const std::span<const ValueId> args =
      request.args(request.op_region(kernel, region_slot(KernelDef, "body")));
  const auto stated = where_predicates(request, kernel);
  std::vector<Predicate> all(stated.begin(), stated.end());
  const auto add = [&](PredicateKind kind, ValueId arg, int64_t a, int64_t b) {
    const Predicate predicate = {kind, {PredicateArg::of(arg), PredicateArg::of(a)}};
    all.push_back(predicate);
    if (kind == PredicateKind::Range) all.back().args[2] = PredicateArg::of(b);
    if (std::find(all.begin(), all.end() - 1, all.back()) != all.end() - 1) all.pop_back();
  };
  for (size_t i = 0; i < of.arguments.size() && i < args.size(); ++i) {
    const Type& type = request.types[request.type_of(args[i])];
    if (type.kind != TypeKind::Scalar || is_float(type.element)) continue;
    const IntFacts& facts = of.arguments[i].facts;
    if (const auto exact = facts.exact()) {
      add(PredicateKind::Eq, args[i], *exact, 0);
    } else if (bounds) {
      add(PredicateKind::Range, args[i], facts.lo, facts.hi);
      if (facts.divisor > 1)
        add(PredicateKind::Mul, args[i], static_cast<int64_t>(facts.divisor), 0);
    }
  }
  if (all.size() == stated.size()) return false;
  const int slot = op_info(KernelDef).where_slot;
  request.set_attr(kernel, static_cast<unsigned>(slot),
                   request.attrs.intern(Attr::predicate_list(all)));
  return true;
}

// Storage that every site aligns says so where the body begins.
void state_alignment(Module& request, OpId kernel, const RequestClass& of) {
  const RegionId body = request.op_region(kernel, region_slot(KernelDef, "body"));
  const std::vector<ValueId> args(request.args(body).begin(), request.args(body).end());
  const OpId first = request.region(body).first;
  for (size_t i = 0; i < of.arguments.size() && i < args.size(); ++i) {
    const TypeId type = request.type_of(args[i]);
    if (request.types[type].kind != TypeKind::Buffer || of.arguments[i].alignment <= 1) continue;
    std::vector<AttrId> attrs(op_info(BufferAssumeAlignment).attrs.size());
    attrs[attr_slot(BufferAssumeAlignment, "minimum_alignment")] =
        request.attrs.intern(Attr::integer(static_cast<int64_t>(of.arguments[i].alignment)));
    const uint32_t one = 1;
    const OpId assume = request.create({.kind = BufferAssumeAlignment,
                                        .operands = {&args[i], 1},
                                        .groups = {&one, 1},
                                        .results = {&type, 1},
                                        .attrs = attrs,
                                        .location = request.location(kernel)});
    std::vector<OpId> users;
    for_each_nested(request, kernel, [&](OpId op) { users.push_back(op); });
    for (const OpId user : users) {
      for (uint32_t k = 0; k < request.operands(user).size(); ++k) {
        if (request.operand(user, k) == args[i])
          request.set_operand(user, k, request.result(assume));
      }
    }
    request.insert_before(first, assume);
  }
}

}  // namespace

std::optional<KernelRequest> make_request(PassContext& of_module, const RequestClass& of,
                                          const KernelDecisions& decisions, bool fixed_size) {
  const Module& module = of_module.module();
  Diagnostics& diagnostics = of_module.diagnostics();
  Module request = rooted_copy(module, of.kernel);
  OpId copy = request.region(request.body()).first;
  request.set_attr(copy, attr_slot(KernelDef, "retain"), request.attrs.intern(Attr::unit()));
  fold_decisions(request, copy, decisions, of.folded);
  const bool stated = state_scalars(request, copy, of, !decisions.conditions.empty());
  state_alignment(request, copy, of);
  if (!fixed_size) fix_workgroup_size(request, copy, of.size);
  if (stated || !of.folded.empty()) {
    PassContext context(request, diagnostics, &of_module.workspace());
    if (!canonicalize(context, copy)) return std::nullopt;
  }
  if (holds_templates(request)) {
    PassContext context(request, diagnostics, &of_module.workspace());
    const SelectOptions early{.final = false, .target = {}, .format = {}};
    if (!expand_kernels(context, {&copy, 1}, early)) return std::nullopt;
    // What was not chosen is not part of the request.
    request = rooted_copy(request, copy);
    copy = request.region(request.body()).first;
  }
  return KernelRequest{.ordinal = 0,
                       .symbol = std::string(symbol_text(module, of.kernel)),
                       .export_name = std::string(export_name(module, of.kernel)),
                       .bytecode = write_bytecode(request, {.strip = true})};
}

}  // namespace loom
