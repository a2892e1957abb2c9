// unroll: expands loops with exact bounds.
#pragma once

#include <cstdint>

#include "loom/pass/pass_context.h"

namespace loom {

struct UnrollOptions {
  // Expand every loop with exact bounds, not only those that a bare `unroll` obliges. Always on in
  // a command program, whose schedule has no loops.
  bool exact_bounds = false;
  // Operations that the root may grow by before the expansion is refused.
  uint64_t max_operations = uint64_t{1} << 24;
};

// Folding happens while cloning, so nested loops and branches on the induction variable are
// resolved on the way; the cost is linear in the operations visited. A loop that `unroll` obliges
// but whose bounds are not exact is LOWERING/003 in a kernel or function; in a command program it
// stays, and the topology check names what kept it open. `unroll(%f)` makes a loop of f iterations
// at a time and one for the rest; the schedule clause stays with the first, as `unroll(1)`. It
// needs an exact step and bounds that are exact or a lower one that is not negative, or the loop
// stays as it is; an f that is not exact is LOWERING/005. Too large an expansion is LOWERING/004.
// False when an error was reported.
bool unroll(PassContext& context, OpId root, const UnrollOptions& options = {});

// Gives an `scf.for` without clauses the clause `unroll(%f)` of this factor.
void set_unroll_factor(Module& module, OpId loop, uint32_t factor);

}  // namespace loom
