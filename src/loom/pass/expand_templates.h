// Selects implementations of template families and takes them in, until none is left.
#pragma once

#include <span>

#include "loom/pass/select_templates.h"

namespace loom {

// Selects and inlines in turn, since inlined implementations may apply families themselves, until
// the root holds no apply and no call of an implementation with a body. In early mode open applies
// stay. False when an error was reported.
bool expand_templates(PassContext& context, OpId root, const SelectOptions& options = {});

// The same for kernels that are about to be compiled and for the functions that they call: what an
// `inline` function applies is decided by the facts at its call, and one with a collective is taken
// in even if it applies none. A target record of a kernel that
// names another format than `options.format` is LOWERING/001.
bool expand_kernels(PassContext& context, std::span<const OpId> kernels,
                    const SelectOptions& options);

}  // namespace loom
