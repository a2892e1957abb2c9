// The storage of indirect counts: who writes it, and when.
#pragma once

#include <span>
#include <string>

#include "loom/command/order.h"
#include "loom/command/plan.h"
#include "loom/diag/diagnostic.h"
#include "loom/ir/module.h"

namespace loom {

// Counts in a transient have been written by a preceding command (COMMAND/004), counts in a binding
// are written by no command of the program (COMMAND/005). `access` says what each argument of the
// program may do to its storage. Returns false when it emitted an error. The names of kernels come
// from `names`, by entry slot.
bool check_counts(const PreparedProgram& program, std::span<const std::string> names,
                  std::span<const Access> access, const CommandOrder& order,
                  Diagnostics& diagnostics);

}  // namespace loom
