// Kernels apart from the module that they were linked into.
#pragma once

#include "loom/ir/module.h"
#include "loom/pass/pass_context.h"

namespace loom {

// A module of the kernel, which comes first in it, and of all that it reaches. An applied family
// reaches all of its implementations.
Module rooted_copy(const Module& module, OpId kernel);

bool calls_functions(const Module& module, OpId kernel);

// Private functions and templates lose the number that a link gave their names, as far as names in
// the module stay apart: in which order libraries were linked is not seen in a rooted copy. The
// first symbol keeps its name.
void restore_private_names(Module& module);

// Replaces calls in the kernel by the bodies of functions, within the bounds of inline.h: what is
// decided in them is then decided in the kernel. Equal kernels come out equal. False when an error
// was reported.
bool enter_functions(PassContext& context, OpId kernel);

}  // namespace loom
