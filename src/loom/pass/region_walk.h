// Pre-order inside one region. The walks of ir/walk.h end with an operation, these with a region.
#pragma once

#include "loom/ir/walk.h"

namespace loom {

// After `id` and everything nested in it; invalid at the end of `region`.
inline OpId next_after_region_subtree(const Module& module, OpId id, RegionId region) {
  while (true) {
    const Op& op = module.op(id);
    if (op.next.valid()) return op.next;
    if (op.parent == region) return {};
    const OpId parent = module.region(op.parent).parent;
    const Op& holder = module.op(parent);
    for (unsigned i = op.parent.index() - holder.region_begin + 1; i < holder.region_count; ++i) {
      const OpId first = module.region(module.op_region(parent, i)).first;
      if (first.valid()) return first;
    }
    id = parent;
  }
}

inline OpId next_in_region_tree(const Module& module, OpId id, RegionId region) {
  if (const OpId first = first_nested(module, id); first.valid()) return first;
  return next_after_region_subtree(module, id, region);
}

}  // namespace loom
