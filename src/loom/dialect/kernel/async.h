// How the tokens and groups of asynchronous transfers may be used.
#pragma once

#include "loom/dialect/hooks.h"

namespace loom::verify {

// DOMINANCE/009 and DOMINANCE/010 in the body of a kernel or function: a token is in one group, a
// group is awaited or carried by a loop, and nothing else produces or takes either. Linear in the
// size of the body.
void check_async_uses(VerifyContext& c, OpId symbol);

}  // namespace loom::verify
