// cse: merges equal pure operations.
#pragma once

#include "loom/pass/pass_context.h"

namespace loom {

// A pure operation or pure `func.call` is replaced by an equal one that dominates it: earlier in
// the same region or in an enclosing one. Equal calls in two branches stay. Allocations never
// merge.
bool cse(PassContext& context, OpId root);

}  // namespace loom
