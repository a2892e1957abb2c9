// How values grow from one workitem to the next along x, and which loops are better run by all
// workitems together.
//
// A loop in which neighbouring workitems touch neighbouring elements is no vector as long as each
// workitem runs it by itself. Run in step, each round is a loop over workitems that LLVM
// vectorizes.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "loom/ir/module.h"
#include "loom/target/llvm/exact.h"

namespace loom {

using WorkgroupSize = std::array<std::optional<uint64_t>, 3>;

class ItemStrides {
 public:
  ItemStrides(const Module& module, OpId kernel, const WorkgroupSize& workgroup_size);

  // What a number is more in the next workitem along x, everything else alike; 0 for all that does
  // not depend on x. Nothing where that is not one number.
  std::optional<int64_t> of(ValueId value) const;

  // In all workitems of the workgroup.
  bool is_same(ValueId value) const { return of(value) == 0 && !varies(value); }

  // The `scf.for` may be run in step and gains by it: bounds and step are the same for all
  // workitems, or the lower one grows along x; what it does can be vectorized; every element that
  // it touches is either the same one for all workitems or a neighbour's neighbour.
  bool gains_in_step(OpId loop) const;

 private:
  void visit(OpId op);
  std::optional<int64_t> stride_of(OpId op) const;
  void set(ValueId value, std::optional<int64_t> stride, bool varies = false);
  bool is_same_along_x(ValueId value) const { return of(value) == 0; }
  bool varies(ValueId value) const { return varying_.contains(value.index()); }
  bool is_neighbourly(OpId access, bool& moves) const;
  bool is_plain(OpId op) const;

  const Module& module_;
  const WorkgroupSize size_;
  ExactValues exact_;
  std::unordered_map<uint32_t, int64_t> strides_;  // by ValueId index
  std::unordered_set<uint32_t> varying_;           // along y or z
};

// A choice at the top of a kernel's body that the last workitem of a workgroup makes for all: when
// it takes the first way, so do the others. Usually that it is inside of an array.
struct GroupGuard {
  OpId condition;
  std::vector<OpId> needs;  // what the condition is computed from, in order, itself included
};
// Nothing where there is none, or where going both ways apart costs more than it gains.
std::optional<GroupGuard> find_guard(const Module& module, OpId kernel, const WorkgroupSize& size);

}  // namespace loom
