// dce: removes unused operations without effect.
#pragma once

#include "loom/pass/pass_context.h"

namespace loom {

// A value counts as used when an operation, a predicate or the type of a live value mentions it.
// Also removes structured operations and schedule regions that hold nothing with an effect.
bool dce(PassContext& context, OpId root);

}  // namespace loom
