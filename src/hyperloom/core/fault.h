// Named places at which a test may kill the process, one in front of each state-changing step.
#pragma once

#include <string_view>

namespace hyperloom {

// Counts the step. With HYPERLOOM_FAULT_POINT=<n> in the environment the process kills itself
// (SIGKILL) at its n-th step, from 1; with HYPERLOOM_FAULT_LOG=<file> each step appends its number
// and name. Neither is set in use, and then this costs one load.
//
// Put one in front of every step whose effect outlives the process: a bus row, a state save, each
// file of a patch, a rename, a decision. Any thread.
void fault_point(std::string_view step);

}  // namespace hyperloom
