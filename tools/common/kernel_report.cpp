#include "common/kernel_report.h"

#include <vector>

#include "common/report_flags.h"
#include "loom/pass/expand_templates.h"
#include "loom/pass/pass_context.h"
#include "loom/target/x86/report.h"

namespace loom {

std::optional<std::string> kernel_report(const LinkFlags& link_flags, const LinkInput& program,
                                         std::span<const std::string> kernels,
                                         DenormalMode denormals) {
  if (kernels.empty()) return std::nullopt;
  // Whoever runs them hears why there is no code.
  Diagnostics unheard;
  const LibraryIndex no_libraries;
  auto module = link({&program, 1}, no_libraries,
                     {.roots = {kernels.begin(), kernels.end()}, .strip_check = true}, unheard);
  if (!module) return std::nullopt;
  Report report = ReportFlags{.form = "details"}.start(*module, link_flags);
  std::vector<OpId> ops;
  for (const std::string& name : kernels) ops.push_back(module->symbol(name));
  PassContext context(*module, unheard);
  SelectOptions selection = x86_selection();
  std::vector<TemplateChoice> choices;
  selection.choices = &choices;
  if (!expand_kernels(context, ops, selection)) return std::nullopt;
  const X86Options options{.cpu = "native", .denormals = denormals};
  if (!compile_x86_reported(*module, ops, OutputForm::Object, options, report, unheard)) {
    return std::nullopt;
  }
  report_templates(*module, choices, report);
  return write_report(report);
}

}  // namespace loom
