#include "loom/bytecode/symbol_index.h"

#include <unordered_set>

#include "loom/bytecode/coding.h"
#include "loom/bytecode/segment.h"
#include "loom/bytecode/text_rules.h"
#include "loom/dialect/op_info.h"
#include "loom/ir/walk.h"

namespace loom {
namespace {

// Bits of a symbol's flags.
constexpr uint64_t kExported = 1;
constexpr uint64_t kRetained = 2;
constexpr uint64_t kDeclaration = 4;
constexpr uint64_t kLastAccess = static_cast<uint64_t>(Access::ReadWrite);

bool has_attr_named(const Module& module, OpId op, std::string_view name) {
  const OpInfo& info = op_info(module.op(op).kind);
  for (unsigned slot = 0; slot < info.attrs.size(); ++slot) {
    if (info.attrs[slot].name == name) return module.has_attr(op, slot);
  }
  return false;
}

// The signature whose arguments have access facets.
RegionId argument_region(const Module& module, OpId op) {
  const OpInfo& info = op_info(module.op(op).kind);
  for (unsigned i = 0; i < module.op(op).region_count; ++i) {
    if (info.regions[i].name == "body") return module.op_region(op, i);
  }
  return RegionId();
}

class ReferenceCollector {
 public:
  explicit ReferenceCollector(const Module& module) : module_(module) {}

  void add(StringId name) {
    if (seen_.insert(name.index()).second) found_.push_back(name);
  }
  void add_op(OpId op) {
    const int own_name = op_info(module_.op(op).kind).symbol_slot;
    const auto attrs = module_.attr_ids(op);
    for (size_t slot = 0; slot < attrs.size(); ++slot) {
      if (attrs[slot].valid() && static_cast<int>(slot) != own_name) add_attr(attrs[slot]);
    }
  }
  std::vector<StringId> take() { return std::move(found_); }

 private:
  // Dictionary nesting is bounded by the readers, so this recursion is too.
  void add_attr(AttrId id) {
    const Attr& attr = module_.attrs[id];
    if (attr.kind == AttrKind::Symbol) add(attr.string());
    if (attr.kind == AttrKind::SymbolList) {
      for (int64_t item : attr.ints) add(StringId(static_cast<uint32_t>(item)));
    }
    for (const DictEntry& entry : attr.entries) add_attr(entry.value);
  }

  const Module& module_;
  std::unordered_set<uint32_t> seen_;
  std::vector<StringId> found_;
};

}  // namespace

bool is_exported(const Module& module, OpId symbol) {
  return has_attr_named(module, symbol, "public") || has_attr_named(module, symbol, "export");
}

bool is_retained(const Module& module, OpId symbol) {
  return has_attr_named(module, symbol, "retain");
}

std::vector<StringId> symbol_references(const Module& module, OpId symbol) {
  ReferenceCollector collector(module);
  collector.add_op(symbol);
  for_each_nested(module, symbol, [&](OpId op) { collector.add_op(op); });
  for (unsigned i = 0; i < module.op(symbol).region_count; ++i) {
    const auto deferred = module.deferred_bodies.find(module.op_region(symbol, i).index());
    if (deferred == module.deferred_bodies.end()) continue;
    for (StringId name : deferred->second.references) collector.add(name);
  }
  return collector.take();
}

std::string encode_symbol_index(const Module& module) {
  ByteWriter out;
  for_each_op(module, module.body(), [&](OpId op) {
    const OpInfo& info = op_info(module.op(op).kind);
    out.text(symbol_text(module, op));
    out.text(info.name);
    out.varint((is_exported(module, op) ? kExported : 0) |
               (is_retained(module, op) ? kRetained : 0) |
               (is_declaration(info.kind) ? kDeclaration : 0));
    const std::vector<StringId> references = symbol_references(module, op);
    out.varint(references.size());
    for (StringId name : references) out.text(module.strings.text(name));
    const auto access = module.access_facets.find(op.index());
    if (access == module.access_facets.end()) {
      out.varint(0);
      return;
    }
    out.varint(access->second.size() + 1);
    for (Access item : access->second) out.varint(static_cast<uint64_t>(item));
  });
  return out.take();
}

const char* decode_symbol_index(Module& module, std::string_view bytes) {
  ByteReader in(bytes);
  for (OpId op = module.region(module.body()).first; op.valid() && in.ok();
       op = module.op(op).next) {
    const OpInfo& info = op_info(module.op(op).kind);
    if (in.text() != symbol_text(module, op) || in.text() != info.name) {
      in.fail("the symbol index does not name the module's symbols");
    }
    if (in.varint() > (kExported | kRetained | kDeclaration)) in.fail("malformed flags");
    std::vector<StringId> references(in.count(1));
    for (StringId& name : references) {
      const std::string_view text = in.text();
      if (!is_symbol_name(text)) in.fail("a symbol name is malformed");
      if (!in.ok()) return in.error();
      name = module.strings.intern(text);
    }
    const uint64_t access_count = in.varint();
    if (access_count > in.remaining() + 1) in.fail("a count is larger than the file");
    const RegionId facets = argument_region(module, op);
    if (access_count > 0) module.access_facets[op.index()].clear();
    for (uint64_t i = 1; i < access_count && in.ok(); ++i) {
      const auto access = static_cast<Access>(in.below(kLastAccess + 1, "an access is unknown"));
      module.access_facets[op.index()].push_back(access);
    }
    const size_t args = facets.valid() ? module.args(facets).size() : 0;
    if (access_count > 0 && args != access_count - 1) in.fail("an access count is wrong");
    const int body = separate_region(info.kind);
    if (body < 0) continue;
    const RegionId region = module.op_region(op, static_cast<unsigned>(body));
    if (module.region(region).deferred) {
      module.deferred_bodies[region.index()].references = std::move(references);
    }
  }
  if (in.ok() && in.remaining() != 0) in.fail("bytes are left over");
  return in.error();
}

}  // namespace loom
