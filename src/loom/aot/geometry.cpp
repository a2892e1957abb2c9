#include "loom/aot/geometry.h"

#include <fmt/format.h>

#include <vector>

#include "loom/base/check.h"
#include "loom/bytecode/bytecode.h"
#include "loom/command/launch_config.h"
#include "loom/dialect/op_info.h"
#include "loom/link/load.h"
#include "loom/text/printer.h"

namespace loom {
namespace {

// A kernel that writes what the function `@symbol` returns.
std::string writer_text(const Module& functions, const CKernel& kernel, unsigned number) {
  std::string formals;
  std::string actuals;
  std::string types;
  const OpId function = functions.symbol(kernel.symbol);
  LOOM_CHECK(function.valid(), "a companion has a function for each kernel");
  for (const ValueId arg : functions.args(functions.op_region(function, 0))) {
    const auto type = scalar_name(functions.types[functions.type_of(arg)].element);
    const char* const separator = actuals.empty() ? "" : ", ";
    formals += fmt::format("%w{}: {}, ", arg.index(), type);
    actuals += fmt::format("{}%w{}", separator, arg.index());
    types += fmt::format("{}{}", separator, type);
  }
  std::string text = fmt::format(
      "kernel.def export(\"{}\") @write${} () {{\n"
      "  %one = index.constant 1 : index\n"
      "  kernel.launch.config workgroups(%one, %one, %one) workgroup_size(%one, %one, %one) : "
      "index\n"
      "}} launch({}%to: buffer) {{\n"
      "  %base = index.constant 0 : offset\n"
      "  %view = buffer.view %to[%base] : buffer -> view<6xi64>\n"
      "  %x, %y, %z, %sx, %sy, %sz = func.call pure @{}({}) : ({}) -> (index, index, index, index, "
      "index, index)\n",
      geometry_name(kernel.name), number, formals, kernel.symbol, actuals, types);
  unsigned place = 0;
  for (const char* const value : {"x", "y", "z", "sx", "sy", "sz"}) {
    text += fmt::format(
        "  %{0}_bits = index.cast %{0} : index to i64\n"
        "  view.store %{0}_bits, %view[{1}] : i64, view<6xi64>\n",
        value, place++);
  }
  return text + "  kernel.return\n}\n";
}

}  // namespace

std::optional<std::string> compile_geometry(Module& module, std::span<const CKernel> kernels,
                                            const X86Options& options, Diagnostics& diagnostics) {
  std::vector<OpId> ops;
  for (const CKernel& kernel : kernels) ops.push_back(kernel.kernel);
  auto bytes = write_launch_config(module, ops, x86_selection().target, diagnostics);
  if (!bytes) return std::nullopt;
  SourceFiles files;
  auto functions = load_module(files, std::move(*bytes), "launch configurations", diagnostics,
                               {.form = InputForm::Bytecode});
  if (!functions) return std::nullopt;
  std::string text = print_text(*functions);
  unsigned number = 0;
  for (const CKernel& kernel : kernels) {
    while (functions->symbol(fmt::format("write${}", number)).valid()) ++number;
    text += writer_text(*functions, kernel, number++);
  }
  auto writers = load_module(files, std::move(text), "launch configurations", diagnostics,
                             {.form = InputForm::Text});
  if (!writers) return std::nullopt;
  return compile_x86(*writers, {}, OutputForm::Object, options, diagnostics);
}

}  // namespace loom
