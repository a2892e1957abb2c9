// Several accumulators in place of one.
#pragma once

#include <cstdint>

#include "loom/pass/pass_context.h"

namespace loom {

// Whether the loop, an `scf.for` of the root without clauses, carries one number that each
// iteration combines with another one, and nothing else looks at: by addition, multiplication,
// bitwise and, or, xor of integers without overflow flags, or by addition of floats marked
// `reassoc`.
bool can_split_reduction(const Module& module, OpId loop);
// Takes `parts` iterations at a time, in their order, each into an accumulator of its own; those
// that are left go to the first one, and in the end all are combined. False when the loop's bounds
// do not allow that, or an error was reported; the module is of no use then.
bool split_reduction(PassContext& context, OpId root, OpId loop, uint32_t parts);

}  // namespace loom
