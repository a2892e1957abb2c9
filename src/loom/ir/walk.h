// Walks operations without recursion, so that nesting depth costs no stack.
#pragma once

#include "loom/ir/module.h"

namespace loom {

// The operation after `id` in pre-order, inside the tree rooted at `root`; invalid at the end.
// Descends into the operation's own regions first, in order. The tree may be changed between steps
// as long as `id` itself stays attached.
OpId next_in_preorder(const Module& module, OpId id, OpId root);
// The same, but skips the regions of `id`.
OpId next_after_subtree(const Module& module, OpId id, OpId root);
// First operation of the first non-empty region; invalid when there is none.
OpId first_nested(const Module& module, OpId id);

// Calls f(OpId) for every operation nested in `root`, in pre-order, `root` excluded.
template <class F>
void for_each_nested(const Module& module, OpId root, F&& f) {
  for (OpId id = first_nested(module, root); id.valid(); id = next_in_preorder(module, id, root)) {
    f(id);
  }
}

// Calls f(OpId) for each operation directly in the region. f may detach the operation it is given.
template <class F>
void for_each_op(const Module& module, RegionId region, F&& f) {
  for (OpId id = module.region(region).first; id.valid();) {
    const OpId next = module.op(id).next;
    f(id);
    id = next;
  }
}

// The operation whose region holds `id`; invalid at module level.
inline OpId parent_op(const Module& module, OpId id) {
  const RegionId region = module.op(id).parent;
  return region.valid() ? module.region(region).parent : OpId();
}

}  // namespace loom
