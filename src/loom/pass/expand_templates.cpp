#include "loom/pass/expand_templates.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "loom/dialect/hooks.h"
#include "loom/dialect/op_info.h"
#include "loom/ir/ir_text.h"
#include "loom/ir/walk.h"
#include "loom/pass/inline.h"

namespace loom {
namespace {

using enum OpKind;

// Implementations that apply families inside one another, from outermost to innermost.
constexpr unsigned kMaxDepth = 64;

}  // namespace

bool expand_templates(PassContext& context, OpId root, const SelectOptions& options) {
  Module& module = context.module();
  // Calls of implementations that the root has not taken in yet.
  const auto pending = [&] {
    OpId call;
    for_each_nested(module, root, [&](OpId op) {
      if (module.op(op).kind != TemplateCall || call.valid()) return;
      const OpId callee =
          module.symbol(module.attr(op, attr_slot(TemplateCall, "callee")).string());
      if (callee.valid() && module.op(callee).kind == TemplateDef) call = op;
    });
    return call;
  };
  for (unsigned depth = 0; depth < kMaxDepth; ++depth) {
    if (!uses_templates(module, root)) return true;
    if (!select_templates(context, root, options)) return false;
    if (!pending().valid()) return true;
    if (!inline_calls(context, root)) return false;
  }
  const OpId call = pending();
  if (!call.valid()) return true;
  context.diagnostics().emit(
      Diag::LoweringInline, module.location(call),
      {{"function", std::string(symbol_ref(module, call, attr_slot(TemplateCall, "callee")))},
       {"detail", fmt::format("implementations apply one another more than {} deep", kMaxDepth)}});
  return false;
}

namespace {

// Functions that the roots call, each once, callers first.
std::vector<OpId> called_functions(const Module& module, std::span<const OpId> roots) {
  std::vector<OpId> found;
  std::vector<bool> seen(module.op_count());
  const auto add_callees = [&](OpId root) {
    for_each_nested(module, root, [&](OpId op) {
      if (module.op(op).kind != FuncCall) return;
      const OpId callee = module.symbol(callee_name(module, op));
      if (!callee.valid() || module.op(callee).kind != FuncDef || seen[callee.index()]) return;
      seen[callee.index()] = true;
      found.push_back(callee);
    });
  };
  for (const OpId root : roots) add_callees(root);
  for (size_t i = 0; i < found.size(); ++i) add_callees(OpId(found[i]));
  return found;
}

// Where workitems meet is known of a kernel's own body only.
bool calls_convergent(const Module& module, OpId kernel) {
  bool found = false;
  for (const OpId function : called_functions(module, {&kernel, 1})) {
    for_each_nested(module, function, [&](OpId op) {
      found = found || op_info(module.op(op).kind).has(trait::Convergent);
    });
  }
  return found;
}

bool fits_target(PassContext& context, OpId kernel, const SelectOptions& options) {
  constexpr unsigned kKernelTarget = attr_slot(KernelDef, "target");
  const Module& module = context.module();
  if (module.op(kernel).kind != KernelDef || !module.has_attr(kernel, kKernelTarget)) return true;
  const OpId record = module.symbol(module.attr(kernel, kKernelTarget).string());
  const std::string_view format = record_format(module, record);
  if (format.empty() || options.format.empty() || format == options.format) return true;
  context.diagnostics().emit(Diag::LoweringNotSupported, module.location(kernel),
                             {{"op", fmt::format("target(@{})", symbol_text(module, record))},
                              {"where", fmt::format("on {}", options.format)}});
  return false;
}

}  // namespace

bool expand_kernels(PassContext& context, std::span<const OpId> kernels,
                    const SelectOptions& options) {
  Module& module = context.module();
  for (const OpId kernel : kernels) {
    if (!fits_target(context, kernel, options)) return false;
  }
  for (const OpId kernel : kernels) {
    if (calls_convergent(module, kernel) && !inline_calls(context, kernel)) return false;
  }
  const std::vector<OpId> before = called_functions(module, kernels);
  const auto uses = [&](OpId root) { return uses_templates(module, root); };
  if (std::ranges::none_of(kernels, uses) && std::ranges::none_of(before, uses)) return true;
  SelectOptions early = options;
  early.final = false;
  for (const OpId kernel : kernels) {
    if (!select_templates(context, kernel, early) || !inline_calls(context, kernel) ||
        !expand_templates(context, kernel, options)) {
      return false;
    }
  }
  const std::vector<OpId> functions = called_functions(module, kernels);
  return std::ranges::all_of(functions, [&](OpId function) {
    return !uses(function) || expand_templates(context, function, options);
  });
}

}  // namespace loom
