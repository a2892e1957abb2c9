// The name of a kernel outside of its module.
#pragma once

#include <string_view>

#include "loom/ir/module.h"

namespace loom {

// `export("...")`, or the symbol where none is stated. The text lives as long as the module.
std::string_view export_name(const Module& module, OpId kernel);

}  // namespace loom
