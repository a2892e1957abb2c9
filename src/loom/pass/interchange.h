// Exchanges two nested loops.
#pragma once

#include "loom/ir/module.h"

namespace loom {

// Whether `outer`, an `scf.for` of the root, holds nothing but one other `scf.for` and pure
// operations and loads in front of it, and the two may change places: neither carries values or has
// clauses, the inner bounds are made outside, and every element that the body writes is touched by
// the same iterations in the same order afterwards. That is proven where accesses cannot overlap,
// or are of one view at the same indices, of which one counts along with one of the loops and none
// mixes both.
bool can_interchange(const Module& module, OpId root, OpId outer);
// Does it. What stood in front of the inner loop moves into its body.
void interchange(Module& module, OpId outer);

}  // namespace loom
