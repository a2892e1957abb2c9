// licm: moves what does not change out of loops.
#pragma once

#include "loom/pass/pass_context.h"

namespace loom {

// A pure operation whose operands are made outside an `scf.for` moves before the loop when it runs
// there anyway (it stands directly in the body of a loop that surely runs) or when running it is
// harmless: it has no contract, or facts that hold before the loop show the contract kept. Loads
// that are not volatile move only out of loops that surely run, hold no call, barrier or other
// effect, and write nothing that may overlap. Assume operations stay under their conditions.
bool licm(PassContext& context, OpId root);

}  // namespace loom
