// Compares the types of a contract with the types of its use: a dimension name of the contract
// stands for the value that the use passes in its place.
#pragma once

#include <span>
#include <utility>
#include <vector>

#include "loom/ir/module.h"

namespace loom {

class SignatureMatch {
 public:
  explicit SignatureMatch(const Module& module) : module_(module) {}

  // The arguments of `region` from number `first` on stand for `actuals`.
  void bind_args(RegionId region, std::span<const ValueId> actuals, unsigned first = 0);
  // The results of `op` stand for `actuals`.
  void bind_results(OpId op, std::span<const ValueId> actuals);

  // Whether a use of type `actual` fits the contract's `formal`. An extent that the contract only
  // mentions takes the first actual extent it meets. An extent bound to a constant fits the static
  // extent of that number, so folding one side keeps the types equal.
  bool same(TypeId formal, TypeId actual);

 private:
  struct Binding {
    ValueKind kind;
    uint32_t owner;
    unsigned first;
    std::span<const ValueId> actuals;
  };
  bool same_dim(Dim formal, Dim actual);
  ValueId actual_of(ValueId formal) const;

  const Module& module_;
  std::vector<Binding> bindings_;
  std::vector<std::pair<ValueId, Dim>> extents_;
};

}  // namespace loom
