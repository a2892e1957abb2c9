// pipeline: overlaps the iterations of loops with a `pipeline(%depth)` clause.
#pragma once

#include "loom/pass/pass_context.h"

namespace loom {

// Loads whose addresses follow from the induction variable run depth - 1 iterations ahead of their
// uses, never in an iteration that the loop does not have: the first ones stand before the loop,
// the loop carries what is under way, and the last depth - 1 iterations stand behind it. Iterations
// that may not exist are guarded by branches. Results are the same for every trip count.
//
// The clause is dropped at depth 1, where no load can run ahead, and when the loop is done. A loop
// stays as it is when the bounds of its first iterations may not be representable or a carried type
// mentions values. A depth that is not exact is LOWERING/005, an exact one above 1 around a body
// with effects or `scf.while` LOWERING/006, too large an expansion LOWERING/004. Command programs
// are left alone. False when an error was reported.
bool pipeline(PassContext& context, OpId root);

}  // namespace loom
