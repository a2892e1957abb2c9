#include "loom/pass/unroll.h"

#include "loom/pass/expand.h"
#include "loom/pass/partial_unroll.h"
#include "loom/pass/region_walk.h"
#include "loom/pass/signature_facts.h"

namespace loom {

bool unroll(PassContext& context, OpId root, const UnrollOptions& options) {
  Module& module = context.module();
  bool ok = true;
  for_each_body(module, root, [&](RegionId body) {
    Rewriter rewriter(context, body);
    assume_signature(rewriter, root, body);
    Expander expander(context, rewriter, root,
                      {.loops = true,
                       .exact_loops = options.exact_bounds,
                       .max_operations = options.max_operations});
    for (OpId id = module.region(body).first; id.valid() && ok;) {
      const OpId op = id;
      if (rewriter.kind_of(op) == OpKind::ScfFor) {
        rewriter.remap(op);
        if (const auto count = expander.wants_loop(op)) {
          id = next_after_region_subtree(module, op, body);
          ok = expander.expand_loop(op, *count);
          if (ok) module.erase(op);
          continue;
        }
        ok = expander.may_stay(op);
        if (ok && wants_partial_unroll(module, op)) {
          const PartialUnroll partial = unroll_partially(context, rewriter, expander, op);
          ok = partial.ok;
          if (partial.main.valid()) {
            id = next_in_region_tree(module, partial.main, body);
            continue;
          }
        }
        id = next_in_region_tree(module, op, body);
        continue;
      }
      id = next_in_region_tree(module, op, body);
      if (!rewriter.adopt_constant(op)) rewriter.remap(op);
    }
  });
  return ok;
}

void set_unroll_factor(Module& module, OpId loop, uint32_t factor) {
  const TypeId type = TypeStore::scalar(ScalarKind::Index);
  const std::vector<AttrId> attrs = {module.attrs.intern(Attr::integer(factor))};
  const OpId constant = module.create({.kind = OpKind::IndexConstant,
                                       .results = std::span(&type, 1),
                                       .attrs = attrs,
                                       .location = module.location(loop)});
  module.insert_before(loop, constant);
  std::vector<ValueId> operands(module.operands(loop).begin(), module.operands(loop).end());
  operands.push_back(module.result(constant));
  std::vector<uint32_t> groups(module.group_sizes(loop).begin(), module.group_sizes(loop).end());
  groups[operand_slot(OpKind::ScfFor, "factor")] = 1;
  module.set_operands(loop, operands, groups);
}

}  // namespace loom
