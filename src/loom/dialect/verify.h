// Checks a module against the language: what the tables say about every operation, and the hooks
// of the dialects for what the tables cannot say.
#pragma once

#include "loom/diag/diagnostic.h"
#include "loom/ir/module.h"

namespace loom {

// Reports every independent problem and returns whether there was none. On success the access
// facets of the module's kernels are up to date (access.h).
//
// Ids inside the module must be in range (the readers see to it); counts, types, attributes,
// terminators and placement are checked here. Bodies that are still encoded (Region::deferred) are
// not looked into. Nesting depth costs no stack. Not thread-safe for one module.
bool verify_module(Module& module, Diagnostics& diagnostics);

}  // namespace loom
