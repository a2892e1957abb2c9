// Which values are poison, or may be on some path.
#pragma once

#include <span>
#include <vector>

#include "loom/dialect/hooks.h"

namespace loom::detail {

// By value: true when poison reaches it through pure operations, arms of selects and regions that
// may be taken, and carried values of loops. Empty when the operations hold no poison. `ops` are
// the nested operations of a module; takes time linear in them.
std::vector<bool> poisoned_values(const VerifyContext& context, std::span<const OpId> ops);

}  // namespace loom::detail
