#include "loom/command/request.h"

#include <unordered_set>

#include "loom/bytecode/bytecode.h"
#include "loom/dialect/export_name.h"
#include "loom/dialect/op_info.h"
#include "loom/ir/clone.h"
#include "loom/ir/walk.h"

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

// The kernel and what it reaches, in first-reach order.
std::vector<OpId> closure(const Module& module, OpId kernel) {
  std::vector<OpId> symbols{kernel};
  std::unordered_set<uint32_t> seen{kernel.index()};
  for (size_t i = 0; i < symbols.size(); ++i) {
    std::vector<StringId> references;
    for_each_nested(module, symbols[i],
                    [&](OpId id) { append_references(module, id, references); });
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

}  // namespace

KernelRequest make_request(const Module& module, OpId kernel, bool fixed_size,
                           const std::array<uint32_t, 3>& size) {
  Module request(module.files());
  Cloner cloner(module, request);
  for (OpId symbol : closure(module, kernel)) {
    const OpId copy = cloner.clone(symbol);
    request.append(request.body(), copy);
    request.define_symbol(symbol_name(request, copy), copy);
  }
  const OpId copy = request.region(request.body()).first;
  request.set_attr(copy, attr_slot(OpKind::KernelDef, "retain"),
                   request.attrs.intern(Attr::unit()));
  if (!fixed_size) fix_workgroup_size(request, copy, size);
  return {.ordinal = 0,
          .symbol = std::string(symbol_text(module, kernel)),
          .export_name = std::string(export_name(module, kernel)),
          .bytecode = write_bytecode(request, {.strip = true})};
}

}  // namespace loom
