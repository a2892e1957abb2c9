// The choices in a tree of Loom sources: configuration keys and rewrites of kernels.
#pragma once

#include <memory>
#include <string>

#include "hyperloom/optimize/space.h"
#include "hyperloom/task/context.h"

namespace hyperloom::optimize {

// Axes of the kernel `kernel` (symbol without '@') and of what it reaches; of every kernel when it
// is empty. A key that a `config.def` gives its value is changed there; one that the workload or
// what was kept binds is bound anew. Errors: "invalid_source" with the first message of a file that
// does not verify, "unreadable_file".
Result<std::unique_ptr<Space>> open_loom_space(const task::Context& context,
                                               const std::string& kernel);

}  // namespace hyperloom::optimize
