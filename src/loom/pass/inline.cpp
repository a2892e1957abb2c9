#include "loom/pass/inline.h"

#include "loom/pass/expand.h"
#include "loom/pass/region_walk.h"
#include "loom/pass/signature_facts.h"

namespace loom {

bool inline_calls(PassContext& context, OpId root, const InlineOptions& options) {
  Module& module = context.module();
  bool ok = true;
  for_each_body(module, root, [&](RegionId body) {
    Rewriter rewriter(context, body);
    assume_signature(rewriter, root, body);
    Expander expander(context, rewriter, root,
                      {.calls = true,
                       .pure_calls = options.pure_calls,
                       .small_calls = options.policy || options.large,
                       .large_calls = options.large,
                       .max_operations = options.max_operations});
    // Pre-order visits definitions before uses, so one sweep also replaces the results of calls.
    for (OpId id = module.region(body).first; id.valid() && ok;) {
      const OpId op = id;
      id = next_in_region_tree(module, op, body);
      if (rewriter.adopt_constant(op)) continue;
      rewriter.remap(op);
      const OpKind kind = rewriter.kind_of(op);
      if (kind != OpKind::FuncCall && kind != OpKind::TemplateCall) continue;
      if (expander.wants_call(op) && expander.expand_call(op)) module.erase(op);
      ok = !expander.failed();
    }
  });
  return ok;
}

}  // namespace loom
