// specialize: fixes one argument of a root.
#pragma once

#include "loom/pass/pass_context.h"

namespace loom {

// Adds `eq(arg, value)` to the root's `where` list, from which canonicalize takes it. `arg` is an
// integer-like argument of a command program, function or kernel launch signature. A value outside
// the argument's type or against the contract is TYPE/015. False when an error was reported.
bool bind_value(PassContext& context, OpId root, ValueId arg, int64_t value);

}  // namespace loom
