// `cmd.core`: the text of a prepared program, for people; it is printed but not read.
#pragma once

#include <string>

#include "loom/command/plan.h"

namespace loom {

std::string cmd_core_text(const PreparedPlan& plan, const PreparedProgram& program);

}  // namespace loom
