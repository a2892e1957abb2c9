#include <gtest/gtest.h>

#include "loom/pass/specialize.h"
#include "pass_harness.h"

namespace loom {
namespace {

constexpr const char* kSource = R"(
func.def @f(%x: index) -> (index) where [range(%x, 0, 9)] {
  %one = index.constant 1 : index
  %a = index.mul %x, %one : index
  func.return %a : index
}
)";

TEST(Runner, NamesAreThoseOfTheTable) {
  for (const PassInfo& pass : all_passes()) EXPECT_EQ(find_pass(pass.name), &pass);
  EXPECT_EQ(find_pass("no-such-pass"), nullptr);
}

TEST(Runner, VerifiesPrintsAndTimesEachStep) {
  TestModule test(kSource);
  PassContext context(*test.module, test.diagnostics);
  std::vector<std::string> printed;
  size_t verified = 0;
  PassRunner runner(
      {.verify =
           [&](const Module&, OpId, Diagnostics&) {
             ++verified;
             return true;
           },
       .print = [&](std::string_view step, const Module&, OpId) { printed.emplace_back(step); },
       .print_after = {"cse"},
       .disabled = {"unroll"},
       .time = true});
  ASSERT_TRUE(runner.run(context, test.roots()[0], {"canonicalize", "cse", "unroll", "cse"}));
  EXPECT_EQ(verified, 3u);
  EXPECT_EQ(printed, (std::vector<std::string>{"cse", "cse"}));
  ASSERT_EQ(runner.timings().size(), 2u);
  EXPECT_EQ(runner.timings()[1].name, "cse");
  EXPECT_EQ(runner.timings()[1].runs, 2u);
  EXPECT_NE(runner.timing_text().find("total"), std::string::npos);
}

TEST(Runner, StopsAtTheFirstFailure) {
  TestModule test(kSource);
  PassContext context(*test.module, test.diagnostics);
  PassRunner runner({.verify = [](const Module&, OpId, Diagnostics&) { return false; }});
  const OpId root = test.roots()[0];
  EXPECT_FALSE(runner.run(context, root, {"canonicalize", "cse"}));
  // The first step still ran.
  EXPECT_EQ(print_text(*test.module).find("index.mul"), std::string::npos);
  EXPECT_FALSE(runner.step("own", context, root, [] { return false; }));
}

TEST(Runner, StopsAfterTheStepThatIsNamed) {
  TestModule test(kSource);
  PassContext context(*test.module, test.diagnostics);
  std::vector<std::string> printed;
  PassRunner runner(
      {.print = [&](std::string_view step, const Module&, OpId) { printed.emplace_back(step); },
       .print_after = {"all"},
       .stop_after = "cse"});
  const std::string passes[] = {"canonicalize", "cse", "dce"};
  EXPECT_TRUE(runner.run_module(context, passes));
  EXPECT_TRUE(runner.stopped());
  EXPECT_EQ(printed, (std::vector<std::string>{"canonicalize", "cse"}));
  for (std::string_view name : default_pipeline()) EXPECT_NE(find_pass(name), nullptr) << name;
}

TEST(Specialize, AddsAnEqualityOnceAndChecksTheContract) {
  TestModule test(kSource);
  PassContext context(*test.module, test.diagnostics);
  const OpId root = test.roots()[0];
  const ValueId x = test.module->args(test.module->op_region(root, 0))[0];
  EXPECT_TRUE(bind_value(context, root, x, 4));
  EXPECT_TRUE(bind_value(context, root, x, 4));
  const std::string text = print_text(*test.module);
  EXPECT_NE(text.find("where [range(%x, 0, 9), eq(%x, 4)]"), std::string::npos) << text;
  EXPECT_FALSE(bind_value(context, root, x, 10));
  EXPECT_FALSE(bind_value(context, root, x, 5));
  EXPECT_EQ(test.report(),
            "TYPE/015 2: value 10 of %x of '@f' contradicts the contract range(%x, 0, 9)\n"
            "TYPE/015 2: value 5 of %x of '@f' contradicts the contract eq(%x, 4)\n");
}

}  // namespace
}  // namespace loom
