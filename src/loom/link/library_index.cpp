#include "loom/link/library_index.h"

#include "loom/bytecode/symbol_index.h"
#include "loom/dialect/op_info.h"
#include "loom/ir/walk.h"

namespace loom {

LibraryIndex::LibraryIndex() : tables_(std::make_unique<Tables>()) {}
LibraryIndex::LibraryIndex(LibraryIndex&&) noexcept = default;
LibraryIndex& LibraryIndex::operator=(LibraryIndex&&) noexcept = default;
LibraryIndex::~LibraryIndex() = default;

LibraryIndex::LibraryIndex(std::vector<LinkInput> libraries) : LibraryIndex() {
  tables_->libraries = std::move(libraries);
  for (uint32_t i = 0; i < tables_->libraries.size(); ++i) {
    const Module& module = tables_->libraries[i].module;
    for_each_op(module, module.body(), [&](OpId op) {
      if (is_declaration(module.op(op).kind) || !is_exported(module, op)) return;
      tables_->exports[symbol_text(module, op)].push_back({i, op});
    });
  }
}

std::span<const LinkInput> LibraryIndex::libraries() const { return tables_->libraries; }

}  // namespace loom
