#include "loom/dialect/export_name.h"

#include "loom/dialect/op_info.h"

namespace loom {

std::string_view export_name(const Module& module, OpId kernel) {
  constexpr unsigned kExport = attr_slot(OpKind::KernelDef, "export");
  if (module.op(kernel).kind == OpKind::KernelDef && module.has_attr(kernel, kExport)) {
    return module.strings.text(module.attr(kernel, kExport).string());
  }
  return symbol_text(module, kernel);
}

}  // namespace loom
