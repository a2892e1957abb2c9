// Assertions and sanitizers: what holds changes nothing, what does not ends the kernel with a
// report.
#include "cases.h"

namespace loom::ops {
namespace {

constexpr LoomDispatchShape kShape = {{2, 1, 1}, {3, 1, 1}};

std::vector<Buffer> storage(int32_t one) {
  return {buffer_of<int32_t>(ScalarKind::I32, {4, 4, 4, 4, one, 4}), zeros(ScalarKind::I32, 6)};
}

std::string with(const std::string& check, const std::string& before = "") {
  return kernel_text(2,
                     R"(  %zero = scalar.constant 0 : i32
  %w0 = buffer.view %b0[%base] : buffer -> view<6xi32>
  %w1 = buffer.view %b1[%base] : buffer -> view<6xi32>
  %v = view.load %w0[%i] : view<6xi32> -> i32
  %good = scalar.cmpi ne, %v, %zero : i32
)" + check,
                     kShape, before);
}

TEST(Checks, ThatHoldChangeNothing) { expect_all_same(check_cases()); }

TEST(Checks, ThatFailEndTheKernelWithAReport) {
  for (const Case& one : failing_cases()) {
    SCOPED_TRACE(one.name);
    Program program(one.text);
    ASSERT_TRUE(program.good());
    EXPECT_FALSE(program.interpret(one.buffers).has_value());
    EXPECT_NE(program.problems.find("RUN/027"), std::string::npos) << program.problems;
    for (const JitTier tier : {JitTier::Fast, JitTier::Optimized}) {
      ASSERT_TRUE(program.compute(one.buffers, tier, one.shape).has_value()) << program.problems;
      ASSERT_TRUE(program.failed.has_value()) << one.text;
      EXPECT_NE(program.failed->find("in '@k' at test.loom:"), std::string::npos)
          << *program.failed;
    }
  }
}

TEST(Checks, SayWhatTheyExpect) {
  const std::pair<std::string, std::string> texts[] = {
      {"  kernel.assert %good \"no zeros\" : i1\n", "no zeros in '@k' at test.loom:17:3"},
      {"  kernel.assert %good : i1\n", "%good is false in '@k' at test.loom:17:3"},
      {"  %r = sanitizer.assert.value %v [range(%v, 1, 2)] : i32\n",
       "range(%v, 1, 2) in '@k' at test.loom:17:8"}};
  for (const auto& [check, report] : texts) {
    Program program(with(check));
    ASSERT_TRUE(program.compute(storage(0), JitTier::Fast, kShape).has_value());
    EXPECT_EQ(program.failed, report);
  }
}

TEST(Checks, EndAKernelWithBarriers) {
  Program program(with(R"(  kernel.assert %good : i1
  %sum = kernel.workgroup.reduce<addi> %v : i32
  kernel.barrier<global> scope(workgroup) ordering(acq_rel)
  view.store %sum, %w1[%i] : i32, view<6xi32>
)"));
  program.expect_same(storage(9), kShape);
  ASSERT_TRUE(program.compute(storage(0), JitTier::Fast, kShape).has_value());
  EXPECT_TRUE(program.failed.has_value());
}

// A function that is called out of line cannot leave the kernel.
TEST(ChecksDeathTest, TrapInFunctionsThatAreCalled) {
  Program program(with(R"(  %p = func.call @positive(%v) : (i32) -> (i32)
  view.store %p, %w1[%i] : i32, view<6xi32>
)",
                       R"(func.def @positive(%v: i32) -> (i32) {
  %r = sanitizer.assert.value %v [gt(%v, 0)] : i32
  func.return %r : i32
}
)"));
  program.expect_same(storage(2), kShape);
  EXPECT_DEATH(program.compute(storage(0), JitTier::Fast, kShape), "assertion failed: gt");
}

}  // namespace
}  // namespace loom::ops
