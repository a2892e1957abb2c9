// What is known about encodings that are values.
#pragma once

#include <optional>

#include "loom/ir/module.h"

namespace loom {

// The answer of an `encoding.isa` at its place: by the operation that made its operand, or by a
// test of the same value that an enclosing `scf.if` branches on. Nothing when both answers remain.
std::optional<bool> decide_isa(const Module& module, OpId isa);

}  // namespace loom
