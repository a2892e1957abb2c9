#include "loom/link/rewrite.h"

#include <algorithm>
#include <map>
#include <optional>

#include "loom/bytecode/symbol_index.h"
#include "loom/dialect/op_info.h"
#include "loom/dialect/verify.h"
#include "loom/ir/clone.h"
#include "loom/ir/ir_text.h"
#include "loom/ir/walk.h"
#include "loom/link/config_values.h"
#include "loom/link/contract.h"
#include "loom/link/link.h"
#include "loom/link/rename.h"
#include "loom/text/printer.h"

namespace loom {
namespace {

std::string contract_text(const Module& module, OpId op) {
  const OpInfo& info = op_info(module.op(op).kind);
  std::string text;
  for (unsigned i = 0; i < info.regions.size(); ++i) {
    const auto args = module.args(module.op_region(op, i));
    if (args.empty()) continue;
    text += (text.empty() ? "" : " ") + std::string(info.regions[i].name) + "(";
    for (const ValueId arg : args) {
      if (arg != args.front()) text += ", ";
      append_value_name(text, module, arg);
      text += ": ";
      append_type(text, module, module.type_of(arg));
    }
    text += ')';
  }
  if (const auto where = where_predicates(module, op); !where.empty()) {
    text += text.empty() ? "where " : " where ";
    append_predicates(text, module, where);
  }
  return text;
}

void append(Module& to, OpId op) {
  to.append(to.body(), op);
  if (const StringId name = symbol_name(to, op); name.valid()) to.define_symbol(name, op);
}

// The symbol alone, so that equal ones are equal texts.
std::string text_of(const Module& module, OpId symbol) {
  Module alone(module.files());
  Cloner cloner(module, alone);
  append(alone, cloner.clone(symbol));
  alone.op_trivia.clear();
  alone.region_trivia.clear();
  return print_text(alone);
}

// What `kernel` reaches besides itself, in first-reach order.
std::vector<OpId> reached(const Module& module, OpId kernel) {
  std::vector<OpId> found{kernel};
  for (size_t i = 0; i < found.size(); ++i) {
    for (const StringId name : symbol_references(module, found[i])) {
      const OpId target = module.symbol(name);
      if (target.valid() && std::ranges::find(found, target) == found.end()) {
        found.push_back(target);
      }
    }
    // An applied family reaches its implementations.
    if (module.op(found[i]).kind != OpKind::TemplateDecl) continue;
    for_each_op(module, module.body(), [&](OpId op) {
      const OpKind kind = module.op(op).kind;
      if (kind != OpKind::TemplateDef && kind != OpKind::TemplateUkernel) return;
      const StringId family = module.attr(op, attr_slot(OpKind::TemplateDef, "family")).string();
      if (family == symbol_name(module, found[i])) found.push_back(op);
    });
  }
  found.erase(found.begin());
  return found;
}

OpId kernel_named(const Module& module, std::string_view name, Diagnostics& diagnostics) {
  const OpId op = module.symbol(name);
  if (op.valid() && module.op(op).kind == OpKind::KernelDef) return op;
  if (!op.valid()) {
    diagnostics.emit(
        Diag::SymbolUnresolved, {},
        {{"symbol", std::string(name)}, {"repair", "name a kernel that the module defines"}});
  } else {
    diagnostics.emit(Diag::SymbolWrongKind, module.location(op),
                     {{"symbol", std::string(name)},
                      {"kind", std::string(symbol_kind_text(module.op(op).kind))},
                      {"expected", "kernel with a body"}});
  }
  return {};
}

bool same_contract(const Module& module, OpId kernel, const Module& from, OpId replacement,
                   Diagnostics& diagnostics) {
  const ContractMatch match = match_contract(module, kernel, from, replacement);
  std::string detail = match.mismatch;
  if (detail.empty() && !match.undeclared.empty()) {
    detail = "it does not imply " + match.undeclared + ", which the replacement requires";
  }
  if (detail.empty()) return true;
  diagnostics
      .emit(Diag::LinkContract, module.location(kernel),
            {{"symbol", std::string(symbol_text(module, kernel))}, {"detail", std::move(detail)}})
      .notes.push_back({from.location(replacement), "the replacement is here"});
  return false;
}

StringId fresh_name(Module& module, std::string_view base) {
  for (unsigned i = 0;; ++i) {
    const StringId name = module.strings.intern(std::string(base) + "$" + std::to_string(i));
    if (!module.symbol(name).valid()) return name;
  }
}

// Copies of what the replacement reaches, and the names they have in `module`.
std::map<StringId, StringId> bring(Module& module, Cloner& cloner, const Module& from,
                                   OpId replacement) {
  std::map<StringId, StringId> names;
  std::vector<OpId> brought;
  for (const OpId symbol : reached(from, replacement)) {
    const std::string_view name = symbol_text(from, symbol);
    const OpId there = module.symbol(name);
    const bool key = op_info(from.op(symbol).kind).dialect == "config";
    if (there.valid() && (key || text_of(module, there) == text_of(from, symbol))) continue;
    const OpId copy = cloner.clone(symbol);
    const StringId own = module.strings.intern(name);
    if (there.valid()) {
      const StringId other = fresh_name(module, name);
      names.emplace(own, other);
      // Two symbols cannot be exported under one name.
      const auto& attrs = op_info(module.op(copy).kind).attrs;
      for (unsigned slot = 0; slot < attrs.size(); ++slot) {
        const std::string_view what = attrs[slot].name;
        if (what == "public" || what == "export" || what == "linkage") {
          module.set_attr(copy, slot, AttrId());
        }
      }
      const auto slot = static_cast<unsigned>(op_info(module.op(copy).kind).symbol_slot);
      module.set_attr(copy, slot, module.attrs.intern(Attr::symbol(other)));
    }
    append(module, copy);
    brought.push_back(copy);
  }
  for (const OpId copy : brought) rename_symbols(module, copy, names);
  return names;
}

}  // namespace

std::vector<SymbolSummary> summarize_symbols(const Module& module) {
  std::vector<SymbolSummary> rows;
  for_each_op(module, module.body(), [&](OpId op) {
    if (!symbol_name(module, op).valid()) return;
    const OpKind kind = module.op(op).kind;
    SymbolSummary& row = rows.emplace_back();
    row.name = symbol_text(module, op);
    row.kind = symbol_kind_text(kind);
    row.declaration = is_declaration(kind);
    row.exported = is_exported(module, op);
    row.retained = is_retained(module, op);
    row.contract = contract_text(module, op);
    for (const StringId name : symbol_references(module, op)) {
      row.references.emplace_back(module.strings.text(name));
    }
  });
  return rows;
}

bool replace_kernel(Module& module, std::string_view name, const Module& from,
                    std::string_view replacement, Diagnostics& diagnostics) {
  const OpId old = kernel_named(module, name, diagnostics);
  const OpId source = kernel_named(from, replacement, diagnostics);
  if (!old.valid() || !source.valid() || !same_contract(module, old, from, source, diagnostics)) {
    return false;
  }
  Module changed(module.files());
  Cloner keep(module, changed);
  OpId place;
  for_each_op(module, module.body(), [&](OpId op) {
    const OpId copy = keep.clone(op);
    append(changed, copy);
    if (op == old) place = copy;
  });
  Cloner take(from, changed);
  auto names = bring(changed, take, from, source);
  const OpId made = take.clone(source);
  rename_symbols(changed, made, names);
  // All of the contract's own attributes but its preconditions stay.
  constexpr unsigned kWhere = attr_slot(OpKind::KernelDef, "where");
  for (unsigned slot = 0; slot < changed.op(made).attr_count; ++slot) {
    if (slot != kWhere) changed.set_attr(made, slot, changed.attr_ids(place)[slot]);
  }
  changed.insert_before(place, made);
  changed.forget_symbol(symbol_name(changed, place));
  changed.erase(place);
  changed.define_symbol(symbol_name(changed, made), made);
  if (!verify_module(changed, diagnostics)) return false;
  module = std::move(changed);
  return true;
}

bool bind_configuration(Module& module, std::string_view key, std::string_view value,
                        Diagnostics& diagnostics) {
  const OpId declared = module.symbol(key);
  if (!declared.valid() || op_info(module.op(declared).kind).dialect != "config") {
    diagnostics.emit(
        Diag::SymbolUnresolved, {},
        {{"symbol", std::string(key)}, {"repair", "name a configuration key of the module"}});
    return false;
  }
  ConfigBindings bindings;
  const size_t errors = diagnostics.error_count();
  if (!bindings.add_flag(std::string(key) + "=" + std::string(value), diagnostics)) return false;
  ConfigValues values({}, bindings, diagnostics);
  Module changed(module.files());
  Cloner keep(module, changed);
  for_each_op(module, module.body(), [&](OpId op) {
    const OpId copy = keep.clone(op);
    append(changed, copy);
    values.bind(module, changed, copy);
  });
  values.check_bound(module);
  if (diagnostics.error_count() != errors || !verify_module(changed, diagnostics)) return false;
  module = std::move(changed);
  return true;
}

}  // namespace loom
