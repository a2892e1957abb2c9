// Random programs compute the same before and after every pass, by the reference interpreter.
#include <gtest/gtest.h>

#include <algorithm>

#include "generator.h"
#include "loom/diag/render.h"
#include "loom/dialect/verify.h"
#include "loom/interp/interp.h"
#include "loom/pass/runner.h"
#include "loom/text/printer.h"
#include "program_count.h"
#include "random_arguments.h"

namespace loom::generate {
namespace {

struct Results {
  std::optional<std::vector<LaneValues>> values;
  std::string problem;  // why there are none
};

struct Program {
  SourceFiles files;
  Diagnostics diagnostics;
  Module module{files};

  explicit Program(uint64_t seed) { Generator(module, seed, {.operations = 20}).run(); }

  std::string problems() const {
    std::string out;
    for (const Diagnostic& d : diagnostics.all()) {
      out += diag_code(d.id) + " " + d.message() + "\n";
    }
    return out + print_text(module);
  }
};

Results run(const Module& module, std::string_view function,
            std::span<const InterpArgument> arguments) {
  Diagnostics diagnostics;
  Results out{run_function(module, function, arguments, {.step_limit = 200'000}, diagnostics), {}};
  for (const Diagnostic& d : diagnostics.all()) {
    out.problem += diag_code(d.id) + " " + d.message() + "\n";
  }
  return out;
}

// A pass may give a result where the program had none, never a different one.
void expect_same(const Results& before, const Results& after) {
  if (!before.values) return;
  ASSERT_TRUE(after.values.has_value()) << "the results got lost: " << after.problem;
  ASSERT_EQ(before.values->size(), after.values->size());
  for (size_t i = 0; i < before.values->size(); ++i) {
    const LaneValues& a = (*before.values)[i];
    const LaneValues& b = (*after.values)[i];
    ASSERT_EQ(a.shape, b.shape) << "result " << i;
    for (size_t lane = 0; lane < a.lanes.size(); ++lane) {
      if (is_float(a.element) && is_nan(a.at(lane)) && is_nan(b.at(lane))) continue;
      ASSERT_EQ(a.lanes[lane], b.lanes[lane]) << "result " << i << ", lane " << lane;
    }
  }
}

constexpr size_t kRunsEach = 4;

// What each function of the program computes for a few arguments.
std::vector<Results> interpret(const Module& module, uint64_t seed, size_t functions) {
  std::mt19937_64 random(seed);
  std::vector<Results> out;
  for (size_t f = 0; f < functions; ++f) {
    const std::string name = "f" + std::to_string(f);
    for (size_t i = 0; i < kRunsEach; ++i) {
      const auto arguments = random_arguments(module, module.symbol(name), random);
      out.push_back(run(module, name, arguments));
    }
  }
  return out;
}

// What a program always does wrong can become visible to the verifier, and then every run fails.
bool is_proven_wrong(const Diagnostics& diagnostics) {
  return std::ranges::all_of(diagnostics.all(),
                             [](const Diagnostic& one) { return one.id == Diag::SubrangeBounds; });
}

void run_steps(Program& program, std::initializer_list<std::string_view> steps) {
  PassContext context(program.module, program.diagnostics);
  PassRunner runner;
  for (size_t f = 0; f < 3; ++f) {
    const OpId root = program.module.symbol("f" + std::to_string(f));
    ASSERT_TRUE(runner.run(context, root, steps)) << program.problems();
  }
}

TEST(Differential, EveryPassKeepsWhatProgramsCompute) {
  size_t defined = 0;
  for (const uint64_t seed : program_seeds(2000)) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Program original(seed);
    ASSERT_TRUE(verify_module(original.module, original.diagnostics)) << original.problems();
    const std::vector<Results> before = interpret(original.module, seed, 3);
    for (const Results& results : before) defined += results.values.has_value() ? 1 : 0;
    const auto expect_kept = [&](std::initializer_list<std::string_view> steps,
                                 std::string_view name) {
      SCOPED_TRACE(std::string(name));
      Program program(seed);
      run_steps(program, steps);
      if (::testing::Test::HasFatalFailure()) return;
      if (!verify_module(program.module, program.diagnostics)) {
        const bool all_fail = std::ranges::any_of(
            before, [](const Results& results) { return !results.values.has_value(); });
        ASSERT_TRUE(all_fail && is_proven_wrong(program.diagnostics)) << program.problems();
        return;
      }
      const std::vector<Results> after = interpret(program.module, seed, 3);
      for (size_t i = 0; i < before.size(); ++i) {
        SCOPED_TRACE("function " + std::to_string(i / kRunsEach));
        expect_same(before[i], after[i]);
        if (::testing::Test::HasFatalFailure()) {
          ADD_FAILURE() << print_text(original.module) << "becomes\n" << print_text(program.module);
          return;
        }
      }
    };
    for (const PassInfo& pass : all_passes()) {
      expect_kept({pass.name}, pass.name);
      if (HasFailure()) return;
    }
    expect_kept({"inline", "canonicalize", "cse", "licm", "unroll", "canonicalize", "cse", "dce"},
                "all together");
    if (HasFailure()) return;
  }
  EXPECT_GT(defined, program_count(2000)) << "too few programs have a result to compare";
}

}  // namespace
}  // namespace loom::generate
