// canonicalize: folds what is known.
#pragma once

#include "loom/pass/pass_context.h"

namespace loom {

// Folds operations (algebraic identities, exact evaluation), applies facts (`where` predicates,
// assume operations, dominating `scf.if` conditions, loop induction ranges), replaces branches with
// an exact condition and loops with no or one iteration by their bodies, and removes unused pure
// operations. Constants become one operation per type and value, at the start of the isolated
// region. Repeated until nothing changes. Violated contracts (a division by zero) are left alone.
bool canonicalize(PassContext& context, OpId root);

}  // namespace loom
