// Which row of a switch or lookup a selector chooses.
#pragma once

#include <algorithm>

#include "loom/dialect/op_info.h"

namespace loom {

// The number of the row, and of the region of a switch; the default comes last.
inline unsigned row_of(const Module& module, OpId op, int64_t selector) {
  static_assert(attr_slot(OpKind::ScfSwitch, "keys") == attr_slot(OpKind::ScfLookup, "keys"));
  const auto keys = module.attr(op, attr_slot(OpKind::ScfSwitch, "keys")).ints;
  const auto found = std::ranges::lower_bound(keys, selector);
  const bool exact = found != keys.end() && *found == selector;
  return static_cast<unsigned>(exact ? found - keys.begin() : std::ssize(keys));
}

}  // namespace loom
