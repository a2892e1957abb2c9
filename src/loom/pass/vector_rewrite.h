// Rewrites of vector operations that depend on their attributes: lanes by number, masks, axes.
#pragma once

#include "loom/pass/rewriter.h"

namespace loom {

// True when the operation, whose operands have been remapped, is no longer needed: its results have
// their replacements, and what replaces it stands before it. Otherwise its results may have learned
// facts.
bool rewrite_vector(Rewriter& rewriter, OpId op);

}  // namespace loom
