// Chooses what values are called when a module is printed.
#pragma once

#include <cstdint>
#include <vector>

#include "loom/ir/ir_text.h"
#include "loom/ir/module.h"
#include "loom/text/name_scopes.h"

namespace loom {

// Source names are kept. Where two visible values have one name (after inlining or unrolling), the
// later one gets a number behind it; a value without a name gets the smallest number that no name
// of its isolated scope uses.
class ValueNamer {
 public:
  explicit ValueNamer(const Module& module);

  // Names the values of the operation, of the regions inside it and of their arguments.
  void add(OpId root);
  ValueNumbers numbers() const { return numbers_; }

 private:
  struct Frame {
    OpId op;
    unsigned next_region = 0;
    NameScopes::Scope scope;
    bool isolated = false;
  };
  // Of one isolated scope.
  struct Unnamed {
    std::vector<ValueId> values;
    std::vector<uint32_t> used;  // names that are numbers
  };

  void open_region(Frame& frame);
  void close_region(const Frame& frame);
  void define(ValueId value);
  void define_extents(TypeId type, RegionId region);
  uint32_t free_suffix(StringId name);

  const Module& module_;
  std::vector<uint32_t> numbers_;
  NameScopes scopes_;
  std::vector<Unnamed> unnamed_;
  std::vector<uint32_t> next_suffix_;  // by StringId
};

}  // namespace loom
