// What the accesses of views and vectors name alike, whatever the operation.
#pragma once

#include <cstdint>
#include <span>

#include "loom/ir/module.h"

namespace loom {

// The view `w`, the origin `index`, the lanes' offsets `o`, the mask `m`, the passthrough `p`, and
// what is written: `v`, `x`, `desired` or `replacement`. Whatever an operation lacks is invalid.
struct NamedAccess {
  ValueId view;
  std::span<const ValueId> indices;
  std::span<const int64_t> fixed;
  ValueId offsets;
  ValueId mask;
  ValueId passthrough;
  ValueId stored;
  ValueId expected;
  bool is_volatile = false;

  NamedAccess(const Module& module, OpId op);
};

}  // namespace loom
