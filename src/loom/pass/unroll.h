// unroll: expands loops with exact bounds.
#pragma once

#include "loom/pass/pass_context.h"

namespace loom {

struct UnrollOptions {
  // Expand every loop with exact bounds, not only those that a bare `unroll` obliges. Always on in
  // a command program, whose schedule has no loops.
  bool exact_bounds = false;
  // Operations that the root may grow by before the expansion is refused.
  uint64_t max_operations = uint64_t{1} << 26;
};

// Folding happens while cloning, so nested loops, branches on the induction variable and pure calls
// in the body are resolved on the way; the cost is linear in the operations visited. A loop that
// `unroll` obliges but whose bounds are not exact stays; in a kernel or function that is
// LOWERING/003, in a command program the topology check names it. Too large an expansion is
// LOWERING/004. False when an error was reported.
bool unroll(PassContext& context, OpId root, const UnrollOptions& options = {});

}  // namespace loom
