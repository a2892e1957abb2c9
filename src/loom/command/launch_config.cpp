#include "loom/command/launch_config.h"

#include "loom/bytecode/bytecode.h"
#include "loom/command/project.h"
#include "loom/dialect/op_info.h"
#include "loom/ir/clone.h"
#include "loom/ir/walk.h"
#include "loom/pass/canonicalize.h"
#include "loom/pass/dce.h"
#include "loom/pass/inline.h"

namespace loom {

std::optional<std::string> write_launch_config(Module& module, std::span<const OpId> kernels,
                                               const TargetFacts& target,
                                               Diagnostics& diagnostics) {
  PassContext context(module, diagnostics);
  Module companion(module.files());
  for (const OpId kernel : kernels) {
    const OpId config = project_config(context, kernel, target);
    if (!config.valid() || !inline_calls(context, config) || !canonicalize(context, config) ||
        !dce(context, config)) {
      return std::nullopt;
    }
    Cloner cloner(module, companion);
    const OpId copy = cloner.clone(config);
    const StringId name = cloner.map(symbol_name(module, kernel));
    companion.set_attr(copy, attr_slot(OpKind::FuncDef, "name"),
                       companion.attrs.intern(Attr::symbol(name)));
    companion.set_attr(copy, attr_slot(OpKind::FuncDef, "public"),
                       companion.attrs.intern(Attr::unit()));
    companion.append(companion.body(), copy);
    companion.define_symbol(name, copy);
  }
  return write_bytecode(companion, {.strip = true});
}

}  // namespace loom
