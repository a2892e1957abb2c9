// Values written on a command line.
#pragma once

#include <optional>
#include <string_view>

#include "loom/ir/attr.h"
#include "loom/ir/type.h"

namespace loom {

// Reads an integer (decimal or 0x), a float, `true` or `false` as a literal of the scalar type:
// Integer, Float or Bool, as it would stand in the text. An integer is taken for a float type too.
// Nothing when the text is no literal or does not fit.
std::optional<Attr> parse_literal(std::string_view text, ScalarKind kind);

}  // namespace loom
