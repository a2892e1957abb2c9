// contracts: refuses what contradicts a contract at a boundary.
#pragma once

#include "loom/pass/pass_context.h"

namespace loom {

// Changes nothing. A call whose operands are known to contradict the callee's contract is TYPE/015,
// a return whose operands are known to contradict the function's own named results is TYPE/016.
// What is not known is left to the promise. Code behind a condition that is known to be false is
// not judged. False when an error was reported; all contradictions of the root are.
bool check_contracts(PassContext& context, OpId root);

}  // namespace loom
