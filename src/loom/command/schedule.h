// The schedule tree: waves for display, and its printed forms.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "loom/command/program_view.h"

namespace loom {

// Wave number of each command: the length of the longest chain of commands that precede it.
std::vector<uint32_t> wave_numbers(const ProgramView& program);

// Levels of indentation that printed schedules use; deeper nodes stand below the last one, so that
// deep trees print in linear space, as the formatter's output does.
inline constexpr size_t kMaxScheduleIndent = 100;

// One line a node, indented by nesting (capped), with wave numbers:
//   serial
//     wave 0: @project_block [8, 1, 1] (%parameters "blk.12.projection.weight", %input, %hidden)
std::string schedule_text(const ProgramView& program);

// The same tree as a Graphviz digraph.
std::string schedule_dot(const ProgramView& program);

// `@entry [x, y, z] (arguments)` of one command, as both forms and cmd.core print it; indirect
// counts are `[dynamic indirect %storage + offset]`.
std::string command_text(const ProgramView& program, uint32_t command);

}  // namespace loom
