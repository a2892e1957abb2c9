#include "loom/command/request.h"

#include <map>
#include <unordered_set>

#include "loom/bytecode/bytecode.h"
#include "loom/dialect/export_name.h"
#include "loom/dialect/hooks.h"
#include "loom/dialect/op_info.h"
#include "loom/ir/clone.h"
#include "loom/ir/walk.h"
#include "loom/pass/select_templates.h"

namespace loom {
namespace {

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

}  // namespace

std::optional<KernelRequest> make_request(const Module& module, OpId kernel, bool fixed_size,
                                          const std::array<uint32_t, 3>& size,
                                          Diagnostics& diagnostics) {
  Module request = rooted_copy(module, kernel);
  OpId copy = request.region(request.body()).first;
  request.set_attr(copy, attr_slot(OpKind::KernelDef, "retain"),
                   request.attrs.intern(Attr::unit()));
  if (!fixed_size) fix_workgroup_size(request, copy, size);
  if (holds_templates(request)) {
    PassContext context(request, diagnostics);
    const SelectOptions early{.final = false, .target = {}, .format = {}};
    if (!expand_kernels(context, {&copy, 1}, early)) return std::nullopt;
    // What was not chosen is not part of the request.
    request = rooted_copy(request, copy);
    copy = request.region(request.body()).first;
  }
  return KernelRequest{.ordinal = 0,
                       .symbol = std::string(symbol_text(module, kernel)),
                       .export_name = std::string(export_name(module, kernel)),
                       .bytecode = write_bytecode(request, {.strip = true})};
}

}  // namespace loom
