// Our side of suite `check`.
//
// usage: bench_check CASES BUDGET_MS
// CASES is the text that generate.cases() wrote. Prints one JSON object of key and value.

#include <fmt/core.h>

#include <chrono>
#include <cstdlib>
#include <string>

#include "common.h"
#include "loom/check/report.h"
#include "loom/check/test_run.h"
#include "timing.h"

namespace loom::bench {
namespace {

int run(const std::string& path, std::chrono::milliseconds budget) {
  SourceFiles files;
  Diagnostics diagnostics;
  std::vector<LinkInput> inputs;
  inputs.push_back({load(files, read_input(path), path), path});
  LinkOptions link_options;
  for (const std::string_view name : check::case_names(inputs[0].module)) {
    link_options.roots.emplace_back(name);
  }
  const LinkInput program{
      value_or_fail(link(inputs, LibraryIndex(), link_options, diagnostics), diagnostics, "link"),
      path};

  const check::TestOptions options;
  const check::DeviceTraits traits = check::device_traits(options);
  const double plan_ns =
      median_ns(budget, [&] { check::make_plan(program.module, options.plan, traits); });
  check::Plan plan = check::make_plan(program.module, options.plan, traits);
  const auto launcher = check::compile_launches(program, plan, options, {}, diagnostics);
  require(launcher != nullptr, "no code can be generated here");

  // Start-up of the workers is part of it.
  const check::RunContext context = check::run_context(program.module, options, launcher.get());
  size_t passed = 0;
  std::string problem;
  const Clock::time_point start = Clock::now();
  require(check::run_samples(
              plan, context, options.workers,
              [&](size_t, check::SampleReport&& report) {
                passed += report.outcome == check::Outcome::Passed ? 1 : 0;
              },
              problem),
          "no worker can be started");
  const double spent = nanoseconds_since(start);
  require(passed == plan.samples.size() && passed != 0, "a case did not pass");
  fmt::print("{{\"cases\": {}, \"plan_ms\": {}, \"cases_per_second\": {}}}\n", passed,
             plan_ns / 1e6, static_cast<double>(passed) / spent * 1e9);
  return 0;
}

}  // namespace
}  // namespace loom::bench

int main(int argc, char** argv) {
  if (argc != 3) {
    fmt::print(stderr, "usage: bench_check CASES BUDGET_MS\n");
    return 2;
  }
  return loom::bench::run(argv[1], std::chrono::milliseconds(std::atoi(argv[2])));
}
