// Reads constants.
#pragma once

#include <cstdint>
#include <optional>

#include "loom/dialect/numeric.h"
#include "loom/ir/module.h"

namespace loom {

// The scalar that `value` is, when it is the result of an `index.constant` or `scalar.constant`.
std::optional<ScalarValue> exact_value(const Module& module, ValueId value);
// The integer that `value` is, when it is the result of an `index.constant` or of an integer
// `scalar.constant`; i1 gives 0 or 1, other integers are read as signed.
std::optional<int64_t> exact_int(const Module& module, ValueId value);

}  // namespace loom
