// `unroll(%f)`: several iterations at a time.
#pragma once

#include "loom/pass/expand.h"

namespace loom {

bool wants_partial_unroll(const Module& module, OpId loop);

struct PartialUnroll {
  OpId main;  // the loop of several iterations; invalid when the loop stayed as it was
  bool ok = true;
};
// The loop itself becomes the remainder, or goes when there is none. Its operands must be remapped.
PartialUnroll unroll_partially(PassContext& context, Rewriter& rewriter, Expander& expander,
                               OpId loop);

}  // namespace loom
