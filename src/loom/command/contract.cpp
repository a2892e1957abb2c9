#include "loom/command/contract.h"

#include "loom/dialect/op_info.h"
#include "loom/ir/ir_text.h"

namespace loom {

std::string launch_contract_text(const Module& module, OpId kernel) {
  const bool external = module.op(kernel).kind == OpKind::KernelEntryDecl;
  const RegionId body =
      module.op_region(kernel, external ? region_slot(OpKind::KernelEntryDecl, "body")
                                        : region_slot(OpKind::KernelDef, "body"));
  std::string text = "launch(";
  bool first = true;
  for (ValueId arg : module.args(body)) {
    if (!first) text += ", ";
    first = false;
    append_value_name(text, module, arg);
    text += ": ";
    append_type(text, module, module.type_of(arg));
  }
  text += ')';
  if (external) return text;
  if (const auto where = where_predicates(module, kernel); !where.empty()) {
    text += " where ";
    append_predicates(text, module, where);
  }
  return text;
}

}  // namespace loom
