// The result of a link: which declarations stay, in which order its symbols stand and what they are
// called.
#include <algorithm>
#include <set>

#include "loom/bytecode/bytecode.h"
#include "loom/bytecode/symbol_index.h"
#include "loom/dialect/op_info.h"
#include "loom/ir/walk.h"
#include "loom/link/library_index.h"
#include "loom/link/linker.h"

namespace loom {

// Library symbols are ordered by their libraries and by their places there.
std::pair<uint32_t, uint32_t> Linker::output_place(Place place) const {
  LOOM_CHECK(is_library(place.module), "inputs are walked in their order");
  const auto library = static_cast<uint32_t>(place.module - inputs_.size());
  return {library, libraries_.tables().places.at(place_key(library, place.op))};
}

// Of several library declarations of one open symbol the earliest stays, whichever was reached
// first: a later link that finds them in one input keeps the first too.
void Linker::settle_declarations() {
  for (uint32_t i = 0; i < nodes_.size() && !diagnostics_.stopped(); ++i) {
    const Place place = nodes_[i].place;
    if (is_library(place.module) && is_declaration(kind_of(place))) {
      const auto open = open_.find(symbol_text(module_of(place.module), place.op));
      if (open != open_.end() && output_place(open->second.earliest) < output_place(place)) {
        const Place earliest = open->second.earliest;
        node_of_.emplace(place_key(earliest.module, earliest.op), i);
        nodes_[i].place = earliest;
        nodes_[i].references.clear();
        nodes_[i].copy = OpId();
      }
    }
    if (!nodes_[i].copy.valid()) expand(i);
  }
}

std::vector<uint32_t> Linker::output_order() const {
  std::vector<uint32_t> order;
  for (uint32_t m = 0; m < inputs_.size(); ++m) {
    const Module& module = inputs_[m].module;
    for_each_op(module, module.body(), [&](OpId op) {
      const auto found = node_of_.find(place_key(m, op));
      if (found != node_of_.end()) order.push_back(found->second);
    });
  }
  const auto libraries = static_cast<std::ptrdiff_t>(order.size());
  for (uint32_t i = 0; i < nodes_.size(); ++i) {
    if (is_library(nodes_[i].place.module)) order.push_back(i);
  }
  std::ranges::sort(order.begin() + libraries, order.end(), {},
                    [&](uint32_t i) { return output_place(nodes_[i].place); });
  return order;
}

void Linker::claim_name(uint32_t index, bool may_rename) {
  Node& node = nodes_[index];
  node.name = symbol_name(result_, node.copy);
  if (!node.name.valid()) return;
  if (taken_.try_emplace(node.name, index).second || !may_rename) return;
  // A number that an earlier link appended is counted on from, so that links in steps name alike.
  std::string base(result_.strings.text(node.name));
  const size_t digits = base.find_last_not_of("0123456789") + 1;
  if (digits > 1 && digits < base.size() && base[digits - 1] == '$') base.resize(digits - 1);
  for (uint64_t n = 1; !taken_.try_emplace(node.name, index).second; ++n) {
    node.name = result_.strings.intern(base + "$" + std::to_string(n));
  }
}

// Only private symbols of libraries give way; two exports of one name are LINK/003.
bool Linker::assign_names(std::span<const uint32_t> order) {
  bool ok = true;
  const auto renamable = [&](const Node& node) {
    const Module& module = module_of(node.place.module);
    const OpKind kind = module.op(node.place.op).kind;
    return is_library(node.place.module) && !is_declaration(kind) &&
           op_info(kind).dialect != "config" && !is_exported(module, node.place.op);
  };
  for (uint32_t i : order) {
    if (renamable(nodes_[i])) continue;
    claim_name(i, false);
    if (!nodes_[i].name.valid()) continue;
    const Node& owner = nodes_[taken_.at(nodes_[i].name)];
    if (&owner == &nodes_[i]) continue;
    diagnostics_.emit(Diag::LinkAmbiguous, location_of(nodes_[i].place),
                      {{"symbol", name_of(nodes_[i].place)},
                       {"files", input_of(owner.place.module).path + " and " +
                                     input_of(nodes_[i].place.module).path}});
    ok = false;
  }
  for (uint32_t i : order) {
    if (renamable(nodes_[i])) claim_name(i, true);
  }
  return ok;
}

// Dictionary nesting is bounded by the readers, so this recursion is too.
AttrId Linker::renamed(AttrId id, const std::map<StringId, StringId>& names) {
  if (!id.valid()) return id;
  Attr attr = result_.attrs[id];
  const auto rename = [&](StringId name) {
    const auto found = names.find(name);
    return found == names.end() ? name : found->second;
  };
  std::vector<int64_t> ints(attr.ints.begin(), attr.ints.end());
  std::vector<DictEntry> entries(attr.entries.begin(), attr.entries.end());
  if (attr.kind == AttrKind::Symbol) attr.bits = rename(attr.string()).index();
  if (attr.kind == AttrKind::SymbolList) {
    for (int64_t& item : ints) item = rename(StringId(static_cast<uint32_t>(item))).index();
  }
  for (DictEntry& entry : entries) entry.value = renamed(entry.value, names);
  attr.ints = ints;
  attr.entries = entries;
  return result_.attrs.intern(attr);
}

bool Linker::apply_renames() {
  for (Node& node : nodes_) {
    std::map<StringId, StringId> names;
    for (const Reference& reference : node.references) {
      const StringId target = nodes_[reference.node].name;
      if (target != reference.name) names.emplace(reference.name, target);
    }
    const int own_slot = op_info(result_.op(node.copy).kind).symbol_slot;
    if (!names.empty()) {
      if (!load_kernel_body(result_, node.copy, diagnostics_)) return false;
      const auto rewrite = [&](OpId op) {
        for (unsigned slot = 0; slot < result_.op(op).attr_count; ++slot) {
          if (op == node.copy && static_cast<int>(slot) == own_slot) continue;
          result_.set_attr(op, slot, renamed(result_.attr_ids(op)[slot], names));
        }
      };
      rewrite(node.copy);
      for_each_nested(result_, node.copy, rewrite);
    }
    if (!node.name.valid()) continue;
    result_.set_attr(node.copy, static_cast<unsigned>(own_slot),
                     result_.attrs.intern(Attr::symbol(node.name)));
  }
  return true;
}

// What the inputs say about providers of symbols that are still declarations: one record a
// provider, in ascending order, before everything else. A merge keeps the records as they are.
void Linker::add_import_records() {
  constexpr unsigned kProvider = attr_slot(OpKind::ModuleImport, "provider");
  constexpr unsigned kSymbols = attr_slot(OpKind::ModuleImport, "symbols");
  std::map<std::string, std::set<std::string>> providers;
  for (uint32_t m = 0; m < inputs_.size(); ++m) {
    const Module& module = inputs_[m].module;
    for_each_op(module, module.body(), [&](OpId op) {
      if (module.op(op).kind != OpKind::ModuleImport) return;
      auto& symbols =
          providers[std::string(module.strings.text(module.attr(op, kProvider).string()))];
      for (const int64_t item : module.attr(op, kSymbols).ints) {
        const std::string_view text = module.strings.text(StringId(static_cast<uint32_t>(item)));
        const OpId symbol = result_.symbol(result_.strings.intern(text));
        const bool open = symbol.valid() && is_declaration(result_.op(symbol).kind);
        if (open || options_.merge) symbols.insert(std::string(text));
      }
    });
  }
  const OpId first = result_.region(result_.body()).first;
  for (const auto& [provider, symbols] : providers) {
    if (symbols.empty()) continue;
    std::vector<int64_t> ints;
    for (const std::string& symbol : symbols) {
      ints.push_back(result_.strings.intern(symbol).index());
    }
    const AttrId attrs[] = {result_.attrs.intern(Attr::string(result_.strings.intern(provider))),
                            result_.attrs.intern({.kind = AttrKind::SymbolList, .ints = ints})};
    static_assert(kProvider == 0 && kSymbols == 1);
    const OpId record = result_.create({.kind = OpKind::ModuleImport, .attrs = attrs});
    if (first.valid()) {
      result_.insert_before(first, record);
    } else {
      result_.append(result_.body(), record);
    }
  }
}

}  // namespace loom
