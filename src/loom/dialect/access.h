// How each kernel touches the storage behind its launch arguments (language reference 5.1).
#pragma once

#include "loom/ir/module.h"

namespace loom {

// Fills `access_facets` of every kernel.def, kernel.decl and kernel.entry.decl of a verified
// module: one entry per launch argument. An argument is followed through views, assumptions,
// selection, carried and yielded values, loads and stores, and calls of functions with a body here;
// any other use counts as ReadWrite. Scalars have None; a kernel without a body touches every
// buffer and view in unknown ways, ReadWrite. A body that is still encoded keeps the facet it
// already has.
//
// A facet describes the storage that the argument names, however a view of it was made. Linear in
// the size of the module; no recursion.
void compute_access_facets(Module& module);

// "none", "read", "write", "read_write"
std::string_view access_name(Access access);

}  // namespace loom
