// Clones operations within a module or into another one.
#pragma once

#include <array>
#include <memory>
#include <unordered_map>
#include <vector>

#include "loom/ir/module.h"

namespace loom {

// Ids by id. Costs memory where entries are, not up to the greatest: a clone of one symbol out of a
// large module must not pay for the module.
template <class Key, class Value>
class PagedIds {
 public:
  Value get(Key key) const {
    const size_t page = key.index() / kPage;
    return page < pages_.size() && pages_[page] ? (*pages_[page])[key.index() % kPage] : Value();
  }
  void set(Key key, Value value) {
    const size_t page = key.index() / kPage;
    if (page >= pages_.size()) pages_.resize(page + 1);
    if (!pages_[page]) pages_[page] = std::make_unique<std::array<Value, kPage>>();
    (*pages_[page])[key.index() % kPage] = value;
  }

 private:
  static constexpr size_t kPage = 256;
  std::vector<std::unique_ptr<std::array<Value, kPage>>> pages_;
};

// Carries values, types, attributes and strings from `source` to `target` (which may be the same
// module). Values without an entry map to themselves within one module and must have an entry
// between two. One object may serve many clones; later entries replace earlier ones.
class Cloner {
 public:
  Cloner(const Module& source, Module& target);

  void map(ValueId from, ValueId to);
  ValueId map(ValueId from) const;
  bool is_mapped(ValueId from) const;
  TypeId map(TypeId from);
  AttrId map(AttrId from);
  StringId map(StringId from);

  // Clones `op` with its regions and comments to a detached operation of the target. Names,
  // locations and access facets are kept; the result values are mapped. Symbols are not
  // registered. Nesting depth costs no stack.
  OpId clone(OpId op);
  // Clones the operations of a source region to the end of a target region.
  void clone_body(RegionId from, RegionId to);
  // Gives `to` copies of the arguments of `from` (types mapped) and maps them.
  void clone_args(RegionId from, RegionId to);

 private:
  OpId clone_shallow(OpId op);
  void clone_trivia(OpId from, OpId to);
  void clone_extents(TypeId type, RegionId from, RegionId to);

  const Module& source_;
  Module& target_;
  const bool same_;
  PagedIds<ValueId, ValueId> values_;
  std::unordered_map<uint32_t, TypeId> types_;
  std::unordered_map<uint32_t, AttrId> attrs_;
  PagedIds<StringId, StringId> strings_;
};

}  // namespace loom
