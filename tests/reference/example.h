// Calls written as comments above an example, executed by the interpreter:
//
//   // @sum([1.0, 2.0], [0.5, 0.5]) = [1.5, 2.5]
//   // @quotient(1, 0) fails: RUN/025
//
// Arguments and results are literals in signature order, vectors `[a, b]` flat in lane order,
// several results `(r0, r1)`, none `()`. `inf`, `-inf` and `nan` stand for floats.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "loom/interp/interp.h"

namespace loom::test {

// The text behind `// ` of every line of that form, in order.
std::vector<std::string> example_calls(std::string_view source);

// Runs one call and compares bit by bit, where NaN equals NaN. Empty when it does what it says,
// otherwise what it did instead.
std::string check_example(const Module& module, std::string_view call,
                          const InterpOptions& options = {});

}  // namespace loom::test
