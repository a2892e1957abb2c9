#include "loom/command/kernel_copy.h"

#include <fmt/format.h>

#include <map>
#include <set>
#include <string>
#include <unordered_set>
#include <vector>

#include "loom/dialect/hooks.h"
#include "loom/dialect/op_info.h"
#include "loom/ir/clone.h"
#include "loom/ir/walk.h"
#include "loom/link/rename.h"
#include "loom/pass/inline.h"

namespace loom {
namespace {

// Symbols that the op's attributes refer to, in slot order.
void append_references(const Module& module, OpId id, std::vector<StringId>& out) {
  const OpInfo& info = op_info(module.op(id).kind);
  for (unsigned slot = 0; slot < info.attrs.size(); ++slot) {
    if (info.attrs[slot].form == AttrForm::Symbol && module.has_attr(id, slot)) {
      out.push_back(module.attr(id, slot).string());
    }
  }
}

// Implementations by family, in module order.
std::map<StringId, std::vector<OpId>> implementations(const Module& module) {
  std::map<StringId, std::vector<OpId>> found;
  for_each_op(module, module.body(), [&](OpId op) {
    const OpKind kind = module.op(op).kind;
    if (kind != OpKind::TemplateDef && kind != OpKind::TemplateUkernel) return;
    found[module.attr(op, attr_slot(OpKind::TemplateDef, "family")).string()].push_back(op);
  });
  return found;
}

// The kernel and what it reaches, in first-reach order. An applied family reaches all of its
// implementations.
std::vector<OpId> closure(const Module& module, OpId kernel) {
  const auto families = implementations(module);
  std::vector<OpId> symbols{kernel};
  std::unordered_set<uint32_t> seen{kernel.index()};
  for (size_t i = 0; i < symbols.size(); ++i) {
    std::vector<StringId> references;
    for_each_nested(module, symbols[i],
                    [&](OpId id) { append_references(module, id, references); });
    append_references(module, OpId(symbols[i]), references);
    for_each_nested(module, symbols[i], [&](OpId id) {
      if (module.op(id).kind != OpKind::TemplateApply) return;
      const auto found = families.find(callee_name(module, id));
      if (found == families.end()) return;
      for (const OpId candidate : found->second) {
        references.push_back(symbol_name(module, candidate));
      }
    });
    for (StringId name : references) {
      const OpId target = module.symbol(name);
      if (target.valid() && seen.insert(target.index()).second) symbols.push_back(target);
    }
  }
  return symbols;
}

bool is_private_code(const Module& module, OpId symbol) {
  const OpKind kind = module.op(symbol).kind;
  if (kind == OpKind::FuncDef) {
    return !module.has_attr(symbol, attr_slot(OpKind::FuncDef, "public")) &&
           !module.has_attr(symbol, attr_slot(OpKind::FuncDef, "export"));
  }
  return kind == OpKind::TemplateDecl || kind == OpKind::TemplateDef;
}

// Without the number that tells private names apart.
std::string_view stem_of(std::string_view name) {
  const size_t digits = name.find_last_not_of("0123456789") + 1;
  if (digits < 2 || digits == name.size() || name[digits - 1] != '$') return name;
  return name.substr(0, digits - 1);
}

}  // namespace

Module rooted_copy(const Module& module, OpId kernel) {
  Module copy(module.files());
  Cloner cloner(module, copy);
  for (OpId symbol : closure(module, kernel)) {
    const OpId made = cloner.clone(symbol);
    copy.append(copy.body(), made);
    copy.define_symbol(symbol_name(copy, made), made);
  }
  return copy;
}

bool calls_functions(const Module& module, OpId kernel) {
  bool found = false;
  for_each_nested(module, kernel,
                  [&](OpId op) { found |= module.op(op).kind == OpKind::FuncCall; });
  return found;
}

void restore_private_names(Module& module) {
  std::set<std::string> taken;
  std::vector<OpId> numbered;
  std::vector<OpId> symbols;
  for_each_op(module, module.body(), [&](OpId op) {
    symbols.push_back(op);
    const bool renamable = symbols.size() > 1 && is_private_code(module, op) &&
                           stem_of(symbol_text(module, op)) != symbol_text(module, op);
    if (renamable) {
      numbered.push_back(op);
    } else {
      taken.emplace(symbol_text(module, op));
    }
  });
  std::map<StringId, StringId> names;
  for (const OpId op : numbered) {
    const std::string stem(stem_of(symbol_text(module, op)));
    std::string name = stem;
    for (unsigned i = 1; !taken.insert(name).second; ++i) name = fmt::format("{}${}", stem, i);
    names.emplace(symbol_name(module, op), module.strings.intern(name));
  }
  if (names.empty()) return;
  for (const OpId op : numbered) module.forget_symbol(symbol_name(module, op));
  for (const OpId op : symbols) rename_symbols(module, op, names);
  for (const OpId op : numbered) module.define_symbol(symbol_name(module, op), op);
}

bool enter_functions(PassContext& context, OpId kernel) {
  return inline_calls(context, kernel, {.pure_calls = true, .large = true});
}

}  // namespace loom
