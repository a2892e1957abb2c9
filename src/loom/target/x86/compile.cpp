#include "loom/target/x86/compile.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "loom/dialect/op_kind.h"
#include "loom/ir/walk.h"
#include "loom/target/x86/codegen.h"

namespace loom {
namespace {

constexpr std::string_view kFamily = "x86_64";
constexpr std::string_view kKnownTargets =
    "x86_64, x86_64:native and x86_64 with an LLVM CPU name such as x86_64:x86-64-v3, "
    "x86_64:x86-64-v4, x86_64:skylake, x86_64:sapphirerapids, x86_64:znver3, x86_64:znver4";

std::vector<OpId> all_kernels(const Module& module) {
  std::vector<OpId> kernels;
  for_each_op(module, module.body(), [&](OpId op) {
    if (module.op(op).kind == OpKind::KernelDef) kernels.push_back(op);
  });
  return kernels;
}

}  // namespace

SelectOptions x86_selection() {
  const auto identity = target_identity(kFamily);
  return {.final = true, .target = identity->facts, .format = identity->format};
}

std::optional<X86Options> parse_x86_target(std::string_view text, Location location,
                                           Diagnostics& diagnostics) {
  const size_t colon = std::min(text.find(':'), text.size());
  X86Options options;
  bool known = text.substr(0, colon) == kFamily;
  if (known && colon < text.size()) {
    options.cpu = text.substr(colon + 1);
    known = options.cpu == "native" || is_known_x86_cpu(options.cpu);
  }
  if (known) return options;
  diagnostics.emit(Diag::TargetUnknown, location,
                   {{"target", std::string(text)}, {"known", std::string(kKnownTargets)}});
  return std::nullopt;
}

std::string x86_identity(OutputForm form, const X86Options& options) {
  return fmt::format("x86 form{} level{} denormals{} {}{}{}", static_cast<int>(form),
                     options.opt_level, static_cast<int>(options.denormals),
                     x86_cpu_identity(options.cpu), options.features, options.variant);
}

std::optional<std::string> compile_x86(const Module& module, std::span<const OpId> kernels,
                                       OutputForm form, const X86Options& options,
                                       Diagnostics& diagnostics, CodegenNotes* notes) {
  std::vector<OpId> all;
  if (kernels.empty()) {
    all = all_kernels(module);
    kernels = all;
  }
  const int level = std::clamp(options.opt_level, 0, 3);
  const CodegenOptions codegen{
      .cpu = options.cpu,
      .opt_level = level,
      .passes = level == 0 ? "" : fmt::format("default<O{}>", level),
      .denormals = options.denormals,
      .features = options.features,
      .variant = options.variant,
  };
  const auto generator = X86Codegen::create(codegen, diagnostics);
  if (generator == nullptr) return std::nullopt;
  return generator->generate(module, kernels, "", form, diagnostics, notes);
}

}  // namespace loom
