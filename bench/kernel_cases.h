#pragma once

// The main program of a C++ side of suite `kernels`.

#include <functional>

#include "kernel_problem.h"

namespace loom::bench {

// Runs once what it was made for, and has done so when it returns.
using Run = std::function<void()>;

// Makes what computes the problem on that many threads.
using MakeRun = std::function<Run(const Problem& problem, unsigned threads)>;

// From the argument number `first` on: BUDGET_MS CASE@THREADS... Checks each case, times it, and
// prints one JSON object of the case as it was named and nanoseconds. A wrong answer ends the
// process.
int measure_cases(int argc, char** argv, int first, const MakeRun& make);

}  // namespace loom::bench
