// Whether barriers and collectives are reached by all the invocations they synchronize.
#pragma once

#include "loom/diag/diagnostic.h"
#include "loom/ir/module.h"

namespace loom {

// Reports STRUCTURE/038 for every convergent operation of a verified module that stands inside an
// scf.if whose condition varies, or an scf.for whose bounds vary, between the invocations of its
// scope. Ids of workitems and lanes vary within a subgroup, the subgroup's id between subgroups;
// what is computed from varying values varies, and so does the content of private storage. Linear
// in the size of the bodies that hold convergent operations; no recursion.
void check_uniform_control(const Module& module, Diagnostics& diagnostics);

}  // namespace loom
