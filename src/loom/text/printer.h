// Writes a module as canonical text.
#pragma once

#include <string>

#include "loom/ir/module.h"

namespace loom {

// The canonical text of the whole module, which reads back as the same module. Regions that are
// still encoded must have been materialized. Nesting depth costs no stack.
std::string print_text(const Module& module);

// One operation with its comments and regions, ended by a newline, at the left margin.
std::string print_op(const Module& module, OpId op);

}  // namespace loom
