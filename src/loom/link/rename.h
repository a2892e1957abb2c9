// New names for symbols, wherever an operation mentions them.
#pragma once

#include <map>

#include "loom/ir/module.h"

namespace loom {

// In `symbol` and all that it holds; `names` is from old to new. The module's table of symbols is
// the caller's.
void rename_symbols(Module& module, OpId symbol, const std::map<StringId, StringId>& names);

}  // namespace loom
