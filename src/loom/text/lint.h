// The naming rule for constants: what `loom-format --lint` reports. No finding makes a module
// wrong.
#pragma once

#include "loom/ir/module.h"

namespace loom {

// Rule `constant-name`: the name of a constant says its role ("%batch") or is the compact literal
// form, "%c16" or "%c0_f32"; it does not spell a number out in words, and a compact form says the
// constant's own value. Reports FORMAT/002 in source order and returns how many findings there are.
size_t lint_module(const Module& module, Diagnostics& diagnostics);

}  // namespace loom
