// Flattens command-program composition into the selected roots.
#pragma once

#include <span>

#include "loom/diag/diagnostic.h"
#include "loom/ir/module.h"

namespace loom {

// Inlines every program launch reachable from `roots`, callee before caller; each becomes a
// `command.serial` group at the call site. Loops and branches that stand directly in a
// `command.concurrent` are wrapped in a `command.serial` first, since their own children are
// ordered. Recursive composition is LOWERING/049, a program without a body SYMBOL/002, an argument
// that contradicts the callee's contract TYPE/015. Returns false when it emitted an error.
bool flatten_programs(Module& module, std::span<const OpId> roots, Diagnostics& diagnostics);

}  // namespace loom
