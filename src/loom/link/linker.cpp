#include "loom/link/linker.h"

#include <algorithm>

#include "loom/bytecode/bytecode.h"
#include "loom/bytecode/symbol_index.h"
#include "loom/dialect/op_info.h"
#include "loom/ir/walk.h"
#include "loom/link/contract.h"
#include "loom/link/library_index.h"
#include "loom/pass/canonicalize.h"

namespace loom {
namespace {

SourceFiles& files_of(std::span<const LinkInput> inputs, const LibraryIndex& libraries) {
  LOOM_CHECK(!inputs.empty() || !libraries.libraries().empty(), "a link needs a module");
  return (inputs.empty() ? libraries.libraries() : inputs).front().module.files();
}

// A declaration that nothing in a link has to define.
bool is_external(const Module& module, OpId op) {
  const OpKind kind = module.op(op).kind;
  return kind == OpKind::KernelEntryDecl || kind == OpKind::TemplateDecl ||
         (kind == OpKind::FuncDecl && module.has_attr(op, attr_slot(OpKind::FuncDecl, "import")));
}

}  // namespace

Linker::Linker(std::span<const LinkInput> inputs, const LibraryIndex& libraries,
               const LinkOptions& options, Diagnostics& diagnostics)
    : inputs_(inputs),
      libraries_(libraries),
      options_(options),
      diagnostics_(diagnostics),
      config_(inputs, options.config, diagnostics),
      result_(files_of(inputs, libraries)) {}

const LinkInput& Linker::input_of(uint32_t module) const {
  return is_library(module) ? libraries_.libraries()[module - inputs_.size()] : inputs_[module];
}

Location Linker::location_of(Place place) const {
  return module_of(place.module).location(place.op);
}

std::string Linker::name_of(Place place) const {
  return std::string(symbol_text(module_of(place.module), place.op));
}

std::optional<Module> Linker::run(std::vector<LinkedSymbol>* plan) {
  if (!collect_direct_symbols()) return std::nullopt;
  const size_t errors = diagnostics_.error_count();
  add_roots();
  for (uint32_t i = 0; i < nodes_.size() && !diagnostics_.stopped(); ++i) expand(i);
  for (uint32_t i = add_benchmarks(); i < nodes_.size() && !diagnostics_.stopped(); ++i) expand(i);
  settle_declarations();
  report_unresolved();
  check_configuration();
  if (diagnostics_.error_count() != errors) return std::nullopt;
  // From here on every reference has a node, and every node a clone.
  const std::vector<uint32_t> order = output_order();
  if (!assign_names(order) || !apply_renames()) return std::nullopt;
  for (uint32_t i : order) {
    result_.append(result_.body(), nodes_[i].copy);
    if (nodes_[i].name.valid()) result_.define_symbol(nodes_[i].name, nodes_[i].copy);
  }
  add_import_records();
  if (!specialize()) return std::nullopt;
  if (plan != nullptr) {
    for (uint32_t i : order) {
      const Node& node = nodes_[i];
      if (!node.name.valid()) continue;  // nothing to call it by
      plan->push_back({std::string(result_.strings.text(node.name)), name_of(node.place),
                       input_of(node.place.module).path, is_library(node.place.module), node.copy,
                       node.reason});
    }
  }
  return std::move(result_);
}

// One namespace of all inputs; SYMBOL/005 when a name is defined twice.
bool Linker::collect_direct_symbols() {
  bool ok = true;
  for (uint32_t m = 0; m < inputs_.size(); ++m) {
    const Module& module = inputs_[m].module;
    for_each_op(module, module.body(), [&](OpId op) {
      if (!symbol_name(module, op).valid()) return;
      if (is_implementation(module.op(op).kind)) {
        implementations_[implemented_family(module, op)].push_back({m, op});
      }
      DirectSymbol& symbol = direct_[symbol_text(module, op)];
      if (is_declaration(module.op(op).kind)) {
        if (!symbol.declaration.valid()) symbol.declaration = {m, op};
      } else if (!symbol.definition.valid()) {
        symbol.definition = {m, op};
      } else {
        diagnostics_
            .emit(Diag::SymbolDuplicate, module.location(op),
                  {{"symbol", std::string(symbol_text(module, op))}})
            .notes.push_back({location_of(symbol.definition), "the first definition is here"});
        ok = false;
      }
    });
  }
  return ok;
}

// --- roots ---------------------------------------------------------------------------------------

bool Linker::is_root_by_default(const Module& module, OpId op, std::string& reason) const {
  if (options_.strip_check && op_info(module.op(op).kind).dialect == "check") return false;
  if (options_.merge) {
    reason = "merged";
    return true;
  }
  if (is_retained(module, op)) {
    reason = "retained";
    return true;
  }
  const bool exports = options_.roots.empty() || options_.include_input_exports;
  reason = "export of an input";
  return exports && !is_declaration(module.op(op).kind) && is_exported(module, op);
}

void Linker::add_roots() {
  for (const std::string& name : options_.roots) add_explicit_root(name);
  for (uint32_t m = 0; m < inputs_.size(); ++m) {
    const Module& module = inputs_[m].module;
    for_each_op(module, module.body(), [&](OpId op) {
      if (!symbol_name(module, op).valid()) return;
      std::string reason;
      if (!is_root_by_default(module, op, reason)) return;
      const Place place = resolve(m, symbol_text(module, op), module.location(op));
      if (place.valid()) add_root(place, reason);
    });
  }
}

void Linker::add_explicit_root(const std::string& name) {
  const auto found = direct_.find(name);
  Place place;
  if (found != direct_.end()) {
    const DirectSymbol& symbol = found->second;
    const Place local = symbol.definition.valid() ? symbol.definition : symbol.declaration;
    place = resolve(local.module, name, location_of(local));
    if (!place.valid()) return;
  } else {
    const size_t errors = diagnostics_.error_count();
    place = library_export(name, Location());
    if (diagnostics_.error_count() != errors) return;
  }
  if (place.valid()) {
    if (options_.strip_check && op_info(kind_of(place)).dialect == "check") {
      diagnostics_.emit(Diag::SymbolWrongKind, location_of(place),
                        {{"symbol", name},
                         {"kind", std::string(symbol_kind_text(kind_of(place)))},
                         {"expected", "root that --strip-check keeps"}});
      return;
    }
    add_root(place, "root");
    return;
  }
  std::string known;
  for (const LinkInput& input : inputs_) {
    for_each_op(input.module, input.module.body(), [&](OpId op) {
      if (is_declaration(input.module.op(op).kind) || !is_exported(input.module, op)) return;
      known += (known.empty() ? "@" : ", @") + std::string(symbol_text(input.module, op));
    });
  }
  diagnostics_.emit(
      Diag::SymbolUnresolved, Location(),
      {{"symbol", name}, {"repair", known.empty() ? "" : "exported by the inputs are " + known}});
}

void Linker::add_root(Place place, std::string reason) {
  root_names_.push_back(name_of(place));
  reach(place, std::move(reason));
}

// --- resolution ----------------------------------------------------------------------------------

Linker::Place Linker::resolve(uint32_t module, std::string_view name, Location use) {
  const Module& owner = module_of(module);
  const Place local{module, owner.symbol(name)};
  if (!local.valid()) {
    diagnostics_.emit(Diag::SymbolUnresolved, use,
                      {{"symbol", std::string(name)}, {"repair", "declare it in this module"}});
    return {};
  }
  const bool declared = is_declaration(kind_of(local));
  const Place found = declared ? resolve_declaration(local) : resolve_definition(local);
  if (!found.valid() || (found.module == local.module && found.op == local.op)) return found;
  return check_pair(local, found) ? found : Place();
}

// A definition stands for itself, except that one which a library exports gives way to a definition
// of that name in the inputs.
Linker::Place Linker::resolve_definition(Place local) {
  const Module& module = module_of(local.module);
  if (!is_library(local.module) || !is_exported(module, local.op)) return local;
  const auto direct = direct_.find(symbol_text(module, local.op));
  return direct != direct_.end() && direct->second.definition.valid() ? direct->second.definition
                                                                      : local;
}

Linker::Place Linker::resolve_declaration(Place local) {
  const Module& module = module_of(local.module);
  const std::string_view name = symbol_text(module, local.op);
  const auto direct = direct_.find(name);
  if (direct != direct_.end() && direct->second.definition.valid()) {
    return direct->second.definition;
  }
  if (!options_.merge && !is_external(module, local.op)) {
    const size_t errors = diagnostics_.error_count();
    const Place exported = library_export(name, location_of(local));
    if (exported.valid() || diagnostics_.error_count() != errors) return exported;
  }
  // Several declarations of one unresolved symbol become one.
  if (direct != direct_.end()) return direct->second.declaration;
  Open& open = open_.try_emplace(name, Open{local, local}).first->second;
  if (output_place(local) < output_place(open.earliest)) open.earliest = local;
  return open.reached;
}

Linker::Place Linker::library_export(std::string_view name, Location use) {
  const auto& exports = libraries_.tables().exports;
  const auto found = exports.find(name);
  if (found == exports.end()) return {};
  const auto place = [&](const LibraryIndex::Tables::Export& item) {
    return Place{static_cast<uint32_t>(inputs_.size()) + item.library, item.op};
  };
  if (found->second.size() == 1) return place(found->second.front());
  // Reported once; the caller sees an invalid place and a new error either way.
  std::string files;
  for (const auto& item : found->second) {
    if (!files.empty()) files += " and ";
    files += libraries_.libraries()[item.library].path;
  }
  Diagnostic& report = diagnostics_.emit(
      Diag::LinkAmbiguous, use, {{"symbol", std::string(name)}, {"files", std::move(files)}});
  for (const auto& item : found->second) {
    report.notes.push_back({location_of(place(item)), "exported here"});
  }
  return {};
}

bool Linker::check_pair(Place declaration, Place definition) {
  if (!checked_.insert(place_key(declaration.module, declaration.op)).second) return true;
  const OpKind declared = kind_of(declaration);
  const OpKind defined = kind_of(definition);
  const std::string name = name_of(declaration);
  const DiagNote note{location_of(definition), is_declaration(defined)
                                                   ? "the other declaration is here"
                                                   : "the definition is here"};
  const bool family = declared == OpKind::TemplateDecl || defined == OpKind::TemplateDecl;
  if (op_info(declared).dialect != op_info(defined).dialect || (family && declared != defined)) {
    diagnostics_
        .emit(Diag::SymbolWrongKind, location_of(declaration),
              {{"symbol", name},
               {"kind", std::string(symbol_kind_text(defined))},
               {"expected", std::string(symbol_kind_text(declared))}})
        .notes.push_back(note);
    return false;
  }
  const ContractMatch match = match_contract(module_of(declaration.module), declaration.op,
                                             module_of(definition.module), definition.op);
  if (!match.mismatch.empty()) {
    diagnostics_
        .emit(Diag::LinkContract, location_of(declaration),
              {{"symbol", name}, {"detail", match.mismatch}})
        .notes.push_back(note);
    return false;
  }
  if (defined == OpKind::ConfigDef) {
    return config_.check_definition(module_of(declaration.module), declaration.op,
                                    module_of(definition.module), definition.op);
  }
  if (!match.undeclared.empty()) {
    diagnostics_
        .emit_as(Severity::Warning, Diag::LinkContract, location_of(declaration),
                 {{"symbol", name},
                  {"detail",
                   "it does not imply " + match.undeclared + ", which the definition requires"}})
        .notes.push_back(note);
  }
  return true;
}

// --- reaching ------------------------------------------------------------------------------------

Cloner& Linker::cloner(uint32_t module) {
  auto& slot = cloners_[module];
  if (!slot) slot = std::make_unique<Cloner>(module_of(module), result_);
  return *slot;
}

uint32_t Linker::reach(Place place, std::string reason) {
  const auto [found, fresh] =
      node_of_.try_emplace(place_key(place.module, place.op), nodes_.size());
  if (fresh) nodes_.push_back({place, OpId(), StringId(), std::move(reason), {}});
  return found->second;
}

void Linker::bind_configuration(Node& node) {
  const Module& source = module_of(node.place.module);
  const auto& deferred = result_.deferred_bodies;
  // An encoded body must be opened when a key that it reads has a value.
  for (unsigned i = 0; i < result_.op(node.copy).region_count; ++i) {
    const auto body = deferred.find(result_.op_region(node.copy, i).index());
    if (body == deferred.end()) continue;
    const bool needed = std::ranges::any_of(body->second.references, [&](StringId name) {
      const OpId key = source.symbol(result_.strings.text(name));
      return key.valid() && op_info(source.op(key).kind).dialect == "config" &&
             config_.is_bound(source, key);
    });
    if (needed) load_kernel_body(result_, node.copy, diagnostics_);
    break;
  }
  if (!config_.bind(source, result_, node.copy)) return;
  // A branch, case or loop that the value rules out must not keep symbols alive.
  bool branches = false;
  for_each_nested(result_, node.copy,
                  [&](OpId op) { branches |= result_.op(op).region_count != 0; });
  if (!branches) return;
  PassContext context(result_, diagnostics_);
  canonicalize(context, node.copy);
}

// The record that a target identity is bound to, in place of its declaration.
OpId Linker::bound_target(Place declaration) {
  std::vector<DictEntry> entries;
  const auto add = [&](std::string_view key, const Attr& value) {
    entries.push_back({result_.strings.intern(key), result_.attrs.intern(value)});
  };
  const TargetIdentity& target = *options_.target;
  if (!target.format.empty()) {
    add("codegen_format", Attr::string(result_.strings.intern(target.format)));
  }
  if (target.facts.subgroup_size) {
    add("subgroup_size", Attr::integer(*target.facts.subgroup_size));
  }
  std::vector<AttrId> attrs(op_info(OpKind::TargetGeneric).attrs.size());
  attrs[attr_slot(OpKind::TargetGeneric, "profile")] = result_.attrs.intern(Attr::enumeration(0));
  const StringId name = result_.strings.intern(name_of(declaration));
  attrs[attr_slot(OpKind::TargetGeneric, "name")] = result_.attrs.intern(Attr::symbol(name));
  if (!entries.empty()) {
    Attr overrides{.kind = AttrKind::Dict};
    overrides.entries = entries;
    attrs[attr_slot(OpKind::TargetGeneric, "overrides")] = result_.attrs.intern(overrides);
  }
  return result_.create(
      {.kind = OpKind::TargetGeneric, .attrs = attrs, .location = location_of(declaration)});
}

void Linker::expand(uint32_t index) {
  const Place place = nodes_[index].place;
  const Module& source = module_of(place.module);
  if (kind_of(place) == OpKind::TargetDecl && options_.target && !options_.merge) {
    nodes_[index].copy = bound_target(place);
    return;
  }
  const OpId copy = cloner(place.module).clone(place.op);
  share_kernel_body(source, place.op, result_, copy);
  nodes_[index].copy = copy;
  if (!options_.merge) bind_configuration(nodes_[index]);
  const std::string reason = "referenced by @" + name_of(place);
  const std::vector<StringId> applied = applied_families(copy);
  for (StringId name : symbol_references(result_, copy)) {
    const Place target =
        resolve(place.module, result_.strings.text(name), source.location(place.op));
    if (!target.valid()) continue;
    const uint32_t node = reach(target, reason);
    nodes_[index].references.push_back({name, node});
    if (std::ranges::find(applied, name) != applied.end()) reach_implementations(target, place);
  }
}

// The families that a clone applies. An implementation refers to its own family without applying
// it; a body that is still encoded can only mention a family to apply it.
std::vector<StringId> Linker::applied_families(OpId copy) const {
  std::vector<StringId> families;
  for_each_nested(result_, copy, [&](OpId op) {
    if (result_.op(op).kind != OpKind::TemplateApply) return;
    families.push_back(result_.attr(op, attr_slot(OpKind::TemplateApply, "family")).string());
  });
  for (unsigned i = 0; i < result_.op(copy).region_count; ++i) {
    const auto deferred = result_.deferred_bodies.find(result_.op_region(copy, i).index());
    if (deferred == result_.deferred_bodies.end()) continue;
    const auto& mentioned = deferred->second.references;
    families.insert(families.end(), mentioned.begin(), mentioned.end());
  }
  return families;
}

// Candidates of an applied family: the implementations of the inputs in their order, then those
// that libraries export.
void Linker::reach_implementations(Place family, Place user) {
  if (options_.merge || kind_of(family) != OpKind::TemplateDecl) return;
  const std::string name = name_of(family);
  if (!applied_.insert(name).second) return;
  const std::string reason = "implements @" + name + ", applied by @" + name_of(user);
  if (const auto found = implementations_.find(name); found != implementations_.end()) {
    for (const Place place : found->second) reach(place, reason);
  }
  const auto& exported = libraries_.tables().implementations;
  const auto found = exported.find(name);
  if (found == exported.end()) return;
  for (const auto& item : found->second) {
    const Place place{static_cast<uint32_t>(inputs_.size()) + item.library, item.op};
    const std::string_view own_name = symbol_text(module_of(place.module), place.op);
    // A definition of the same name in the inputs wins; two exporters are ambiguous.
    const auto direct = direct_.find(own_name);
    if (direct != direct_.end() && direct->second.definition.valid()) continue;
    const Place only = library_export(own_name, location_of(place));
    if (!only.valid()) return;
    reach(only, reason);
  }
}

// What binds a key is checked even where nothing that stays reads it.
void Linker::check_configuration() {
  if (options_.merge) return;
  for (const LinkInput& input : inputs_) config_.check_bound(input.module);
}

// --- what stays open -----------------------------------------------------------------------------

void Linker::report_unresolved(Place declaration) {
  const OpKind kind = kind_of(declaration);
  const std::string name = name_of(declaration);
  if (kind == OpKind::ConfigDecl) {
    if (options_.require_resolved_config) {
      diagnostics_.emit(Diag::ConfigUnresolved, location_of(declaration), {{"key", name}});
    }
    return;
  }
  if (options_.allow_unresolved || is_external(module_of(declaration.module), declaration.op)) {
    return;
  }
  if (kind == OpKind::TargetDecl && (options_.target || options_.keep_kernel_declarations)) return;
  if (kind == OpKind::KernelDecl && options_.keep_kernel_declarations) return;
  if (kind == OpKind::CommandProgramDecl) {
    diagnostics_.emit(Diag::SymbolUnresolvedProgram, location_of(declaration), {{"symbol", name}});
    return;
  }
  diagnostics_.emit(Diag::SymbolUnresolvedDeclaration, location_of(declaration),
                    {{"symbol", name}, {"kind", std::string(symbol_kind_text(kind))}});
}

void Linker::report_unresolved() {
  if (options_.merge) return;
  for (size_t i = 0; i < nodes_.size() && !diagnostics_.stopped(); ++i) {
    if (is_declaration(kind_of(nodes_[i].place))) report_unresolved(nodes_[i].place);
  }
}

std::optional<Module> link(std::span<const LinkInput> inputs, const LibraryIndex& libraries,
                           const LinkOptions& options, Diagnostics& diagnostics,
                           std::vector<LinkedSymbol>* plan) {
  return Linker(inputs, libraries, options, diagnostics).run(plan);
}

}  // namespace loom
