#include "loom/target/llvm/named_access.h"

#include "loom/dialect/op_info.h"

namespace loom {

NamedAccess::NamedAccess(const Module& module, OpId op) {
  const OpInfo& info = op_info(module.op(op).kind);
  const std::pair<std::string_view, ValueId*> operands[] = {
      {"w", &view},         {"o", &offsets},          {"m", &mask},
      {"p", &passthrough},  {"v", &stored},           {"x", &stored},
      {"desired", &stored}, {"replacement", &stored}, {"expected", &expected}};
  for (unsigned slot = 0; slot < info.operands.size(); ++slot) {
    const auto group = operand_group(module, op, slot);
    if (info.operands[slot].name == "index") indices = group;
    for (const auto& [name, value] : operands) {
      if (info.operands[slot].name == name) *value = group[0];
    }
  }
  for (unsigned slot = 0; slot < info.attrs.size(); ++slot) {
    if (info.attrs[slot].name == "static_index") fixed = module.attr(op, slot).ints;
    if (info.attrs[slot].form == AttrForm::Flags &&
        info.attrs[slot].flags == FlagSetId::MemoryFlags) {
      is_volatile = (flags_of(module, op, slot) & kVolatile) != 0;
    }
  }
}

}  // namespace loom
