// Reading and rewriting modules.
#include "loom/link/rewrite.h"
#include "loom/api/state.h"
#include "loom/base/check.h"
#include "loom/bytecode/bytecode.h"
#include "loom/link/load.h"
#include "loom/text/printer.h"

namespace loom::api {

Module::Module(std::unique_ptr<State> state) : state_(std::move(state)) {}
Module::Module(Module&&) noexcept = default;
Module& Module::operator=(Module&&) noexcept = default;
Module::~Module() = default;

std::optional<Module> Module::read(const Context& context, std::string bytes,
                                   const std::string& name, Messages& messages) {
  auto module = load_module(context.state()->open_files(), std::move(bytes), name,
                            messages.state().of(*context.state()));
  if (!module) return std::nullopt;
  return Module(std::make_unique<State>(State{context.state(), std::move(*module)}));
}

std::vector<Symbol> Module::symbols() const {
  std::vector<Symbol> rows;
  for (SymbolSummary& row : summarize_symbols(state_->module)) {
    rows.push_back({std::move(row.name), std::move(row.kind), row.declaration, row.exported,
                    row.retained, std::move(row.contract), std::move(row.references)});
  }
  return rows;
}

bool Module::replace_kernel(const std::string& name, const Module& from,
                            const std::string& replacement, Messages& messages) {
  LOOM_CHECK(from.state().context == state_->context, "both modules are of one context");
  return loom::replace_kernel(state_->module, name, from.state().module, replacement,
                              messages.state().of(*state_->context));
}

bool Module::bind_config(const std::string& key, const std::string& value, Messages& messages) {
  return bind_configuration(state_->module, key, value, messages.state().of(*state_->context));
}

std::string Module::text() const { return print_text(state_->module); }
std::string Module::bytecode() const { return write_bytecode(state_->module); }

void Modules::add(Module module, const std::string& name) {
  LOOM_CHECK(module.state().context == state_->context, "the module is of the same context");
  state_->inputs.push_back({std::move(module.state().module), name});
}

}  // namespace loom::api
