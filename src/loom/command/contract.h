// The launch contract of a kernel as canonical text.
#pragma once

#include <string>

#include "loom/ir/module.h"

namespace loom {

// `launch(%weights: view<8xf32>, %input: buffer) where [...]`
std::string launch_contract_text(const Module& module, OpId kernel);

}  // namespace loom
