// Kernels that between them hold every operation of device code that no random program holds
// (tests/generate), each with the storage that it is run on.
#pragma once

#include "both.h"

namespace loom::ops {

struct Case {
  std::string name;
  std::string text;
  std::vector<Buffer> buffers;
  LoomDispatchShape shape = {{1, 1, 1}, {1, 1, 1}};
  Tolerance tolerance;
};

// A module with the kernel @k. It has `buffers` launch arguments %b0, %b1, ... and, at the start of
// its body, %base: offset 0 and %i: the number of the workitem along x in the dispatch. `before`
// stands in front of it.
std::string kernel_text(unsigned buffers, const std::string& body,
                        LoomDispatchShape shape = {{1, 1, 1}, {1, 1, 1}},
                        const std::string& before = "");

// The same with a target whose subgroups have that many lanes.
std::string with_subgroups(std::string kernel_text, unsigned lanes);

std::vector<Case> apart_cases();
std::vector<Case> atomic_cases();
std::vector<Case> check_cases();
std::vector<Case> collective_cases();
std::vector<Case> control_cases();
std::vector<Case> fragment_cases();
std::vector<Case> lane_cases();
std::vector<Case> memory_cases();
std::vector<Case> schema_cases();
std::vector<Case> transfer_cases();

// All of the above.
std::vector<Case> all_cases();

// A check of these fails.
std::vector<Case> failing_cases();

// Runs each on both sides.
void expect_all_same(const std::vector<Case>& cases);

}  // namespace loom::ops
