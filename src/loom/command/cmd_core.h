// `cmd.core`: the text of a prepared program, for people; it is printed but not read.
#pragma once

#include <string>

#include "loom/command/program_view.h"

namespace loom {

std::string cmd_core_text(const ProgramView& program);

}  // namespace loom
