#include "loom/ir/walk.h"

namespace loom {
namespace {

// First operation of the regions from number `i` on.
OpId first_from_region(const Module& module, OpId id, unsigned i) {
  for (const unsigned count = module.op(id).region_count; i < count; ++i) {
    const OpId first = module.region(module.op_region(id, i)).first;
    if (first.valid()) return first;
  }
  return {};
}

}  // namespace

OpId first_nested(const Module& module, OpId id) { return first_from_region(module, id, 0); }

OpId next_after_subtree(const Module& module, OpId id, OpId root) {
  while (id.valid() && id != root) {
    const Op& op = module.op(id);
    if (op.next.valid()) return op.next;
    const OpId parent = module.region(op.parent).parent;
    if (!parent.valid()) return {};
    const unsigned number = op.parent.index() - module.op(parent).region_begin;
    if (const OpId first = first_from_region(module, parent, number + 1); first.valid()) {
      return first;
    }
    id = parent;
  }
  return {};
}

OpId next_in_preorder(const Module& module, OpId id, OpId root) {
  if (const OpId first = first_nested(module, id); first.valid()) return first;
  return next_after_subtree(module, id, root);
}

}  // namespace loom
