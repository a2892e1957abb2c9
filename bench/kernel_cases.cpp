#include "kernel_cases.h"

#include <chrono>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>

#include "common.h"
#include "timing.h"

namespace loom::bench {

int measure_cases(int argc, char** argv, int first, const MakeRun& make) {
  require(argc >= first + 2, "usage: PROGRAM ... BUDGET_MS CASE@THREADS...");
  const std::chrono::milliseconds budget(std::atoi(argv[first]));
  std::string rows;
  std::unique_ptr<Problem> problem;
  for (int i = first + 1; i < argc; ++i) {
    const std::string_view name = argv[i];
    const size_t at = name.find('@');
    require(at != std::string_view::npos, fmt::format("'{}' names no threads", name));
    if (!problem || problem->name() != name.substr(0, at)) {
      problem.reset();  // its memory first
      problem = std::make_unique<Problem>(name.substr(0, at));
    }
    const Run run = make(*problem, static_cast<unsigned>(std::atoi(name.data() + at + 1)));
    problem->spoil();
    run();
    const std::string wrong = problem->wrong();
    require(wrong.empty(), fmt::format("{}: {}", name, wrong));
    rows += fmt::format(R"({}"{}":{})", rows.empty() ? "" : ",", name, median_ns(budget, run));
  }
  fmt::print("{{{}}}\n", rows);
  return 0;
}

}  // namespace loom::bench
