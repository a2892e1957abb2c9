#include "loom/link/rename.h"

#include <vector>

#include "loom/ir/walk.h"

namespace loom {
namespace {

AttrId renamed(Module& module, AttrId id, const std::map<StringId, StringId>& names) {
  if (!id.valid()) return id;
  const auto rename = [&](StringId name) {
    const auto found = names.find(name);
    return found == names.end() ? name : found->second;
  };
  Attr attr = module.attrs[id];
  std::vector<int64_t> ints(attr.ints.begin(), attr.ints.end());
  std::vector<DictEntry> entries(attr.entries.begin(), attr.entries.end());
  if (attr.kind == AttrKind::Symbol) attr.bits = rename(attr.string()).index();
  if (attr.kind == AttrKind::SymbolList) {
    for (int64_t& item : ints) item = rename(StringId(static_cast<uint32_t>(item))).index();
  }
  // Dictionaries do not nest.
  for (DictEntry& entry : entries) {
    const Attr& value = module.attrs[entry.value];
    if (value.kind == AttrKind::Symbol) {
      entry.value = module.attrs.intern(Attr::symbol(rename(value.string())));
    }
  }
  attr.ints = ints;
  attr.entries = entries;
  return module.attrs.intern(attr);
}

}  // namespace

void rename_symbols(Module& module, OpId symbol, const std::map<StringId, StringId>& names) {
  const auto rewrite = [&](OpId op) {
    for (unsigned slot = 0; slot < module.op(op).attr_count; ++slot) {
      module.set_attr(op, slot, renamed(module, module.attr_ids(op)[slot], names));
    }
  };
  rewrite(symbol);
  for_each_nested(module, symbol, rewrite);
}

}  // namespace loom
