#include "loom/link/library_index.h"

#include "loom/bytecode/symbol_index.h"
#include "loom/dialect/op_info.h"
#include "loom/ir/walk.h"

namespace loom {

bool is_implementation(OpKind kind) {
  return kind == OpKind::TemplateDef || kind == OpKind::TemplateUkernel;
}

std::string_view implemented_family(const Module& module, OpId implementation) {
  constexpr unsigned kFamily = attr_slot(OpKind::TemplateDef, "family");
  static_assert(kFamily == attr_slot(OpKind::TemplateUkernel, "family"));
  return symbol_ref(module, implementation, kFamily);
}

LibraryIndex::LibraryIndex() : tables_(std::make_unique<Tables>()) {}
LibraryIndex::LibraryIndex(LibraryIndex&&) noexcept = default;
LibraryIndex& LibraryIndex::operator=(LibraryIndex&&) noexcept = default;
LibraryIndex::~LibraryIndex() = default;

LibraryIndex::LibraryIndex(std::vector<LinkInput> libraries) : LibraryIndex() {
  tables_->libraries = std::move(libraries);
  for (uint32_t i = 0; i < tables_->libraries.size(); ++i) {
    const Module& module = tables_->libraries[i].module;
    uint32_t position = 0;
    for_each_op(module, module.body(), [&](OpId op) {
      const OpKind kind = module.op(op).kind;
      if (symbol_name(module, op).valid()) tables_->places.emplace(place_key(i, op), position++);
      if (!symbol_name(module, op).valid() || is_declaration(kind)) return;
      if (op_info(kind).dialect == "check") return;  // tests are not supplied
      // A target record has no visibility; it supplies its name like an export.
      if (kind != OpKind::TargetGeneric && !is_exported(module, op)) return;
      tables_->exports[symbol_text(module, op)].push_back({i, op});
      if (is_implementation(kind)) {
        tables_->implementations[implemented_family(module, op)].push_back({i, op});
      }
    });
  }
}

std::span<const LinkInput> LibraryIndex::libraries() const { return tables_->libraries; }

}  // namespace loom
