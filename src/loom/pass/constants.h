// Reads constants.
#pragma once

#include <cstdint>
#include <optional>

#include "loom/ir/module.h"

namespace loom {

// The integer that `value` is, when it is the result of an `index.constant` or of an integer
// `scalar.constant`; i1 gives 0 or 1, other integers are read as signed.
std::optional<int64_t> exact_int(const Module& module, ValueId value);

}  // namespace loom
