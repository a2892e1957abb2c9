// Launch configurations as companions of kernels.
#include "loom/command/launch_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "loom/api/state.h"
#include "loom/bytecode/bytecode.h"
#include "loom/dialect/op_info.h"
#include "loom/interp/interp.h"
#include "loom/ir/walk.h"
#include "loom/link/load.h"
#include "loom/target/x86/compile.h"

namespace loom::api {

namespace {

// Operations of one evaluation; configurations are a few dozen.
constexpr uint64_t kStepLimit = 1u << 22;
constexpr uint32_t kCallLimit = 64;

// The others are functions that configurations call.
bool is_kernel(const loom::Module& module, OpId function) {
  return module.has_attr(function, attr_slot(OpKind::FuncDef, "public"));
}

}  // namespace

std::optional<LaunchConfig> LaunchConfig::read(const Context& context, std::string bytes,
                                               const std::string& name, Messages& messages) {
  Diagnostics& diagnostics = messages.state().of(*context.state());
  auto module = load_module(context.state()->open_files(), std::move(bytes), name, diagnostics,
                            {.form = InputForm::Bytecode});
  if (!module) return std::nullopt;
  if (const char* problem = launch_config_problem(*module)) {
    diagnostics.emit(Diag::BinaryCorrupt, {}, {{"format", ".loomlaunch"}, {"detail", problem}});
    return std::nullopt;
  }
  return LaunchConfig(std::make_shared<State>(State{context.state(), std::move(*module)}));
}

std::vector<std::string> LaunchConfig::kernels() const {
  std::vector<std::string> names;
  for_each_op(state_->module, state_->module.body(), [&](OpId op) {
    if (is_kernel(state_->module, op)) names.emplace_back(symbol_text(state_->module, op));
  });
  return names;
}

std::optional<std::vector<std::string>> LaunchConfig::workload(const std::string& kernel) const {
  const loom::Module& module = state_->module;
  const OpId function = module.symbol(kernel);
  if (!function.valid() || !is_kernel(module, function)) return std::nullopt;
  std::vector<std::string> types;
  for (const ValueId arg : module.args(module.op_region(function, 0))) {
    types.emplace_back(scalar_name(module.types[module.type_of(arg)].element));
  }
  return types;
}

std::optional<Geometry> LaunchConfig::evaluate(const std::string& kernel,
                                               std::span<const uint64_t> workload,
                                               Messages& messages) const {
  Diagnostics& diagnostics = messages.state().of(*state_->context);
  const loom::Module& module = state_->module;
  const OpId function = module.symbol(kernel);
  if (!function.valid() || !is_kernel(module, function)) {
    diagnostics.emit(Diag::SymbolUnresolved, {},
                     {{"symbol", kernel}, {"repair", "name a kernel of the companion"}});
    return std::nullopt;
  }
  const auto args = module.args(module.op_region(function, 0));
  if (args.size() != workload.size()) {
    diagnostics.emit(Diag::RunArguments, {},
                     {{"symbol", kernel},
                      {"detail", fmt::format("its workload has {} values, not {}", args.size(),
                                             workload.size())}});
    return std::nullopt;
  }
  std::vector<InterpArgument> values;
  for (size_t i = 0; i < args.size(); ++i) {
    const ScalarKind kind = module.types[module.type_of(args[i])].element;
    values.emplace_back(scalar_argument(from_bits(kind, workload[i])));
  }
  InterpOptions options;
  options.step_limit = kStepLimit;
  options.call_limit = kCallLimit;
  const auto results = run_function(module, kernel, values, options, diagnostics);
  if (!results) return std::nullopt;
  Geometry geometry;
  for (size_t i = 0; i < 6; ++i) {
    const uint64_t bits = (*results)[i].at(0).bits;
    const bool size = i >= 3;
    if (bits > std::numeric_limits<uint32_t>::max() || (size && bits == 0)) {
      if (size) {
        diagnostics.emit(Diag::CommandWorkgroupSize, {}, {{"kernel", kernel}, {"repair", ""}});
      } else {
        diagnostics.emit(Diag::CommandCount, {},
                         {{"kernel", kernel}, {"axis", std::string(1, "xyz"[i])}, {"repair", ""}});
      }
      return std::nullopt;
    }
    (size ? geometry.size : geometry.count)[i % 3] = static_cast<uint32_t>(bits);
  }
  return geometry;
}

std::optional<std::string> write_launch_config(LinkedModule module,
                                               const std::vector<std::string>& symbols,
                                               Messages& messages) {
  loom::Module& linked = module.state().module;
  Diagnostics& diagnostics = messages.state().of(*module.state().context);
  std::vector<OpId> kernels;
  if (symbols.empty()) {
    for_each_op(linked, linked.body(), [&](OpId op) {
      if (linked.op(op).kind == OpKind::KernelDef) kernels.push_back(op);
    });
  }
  for (const std::string& symbol : symbols) {
    const OpId op = linked.symbol(symbol);
    if (!op.valid() || linked.op(op).kind != OpKind::KernelDef) {
      diagnostics.emit(Diag::SymbolUnresolved, {},
                       {{"symbol", symbol}, {"repair", "name a kernel that the module defines"}});
      return std::nullopt;
    }
    kernels.push_back(op);
  }
  return loom::write_launch_config(linked, kernels, x86_selection().target, diagnostics);
}

}  // namespace loom::api
