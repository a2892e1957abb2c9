// Every kernel computes on x86-64 what the interpreter says.
#include "cases.h"

namespace loom::ops {
namespace {

TEST(Atomics, CombineExactlyAsTheInterpreterDoes) { expect_all_same(atomic_cases()); }
TEST(Collectives, MeetAsInTheInterpreter) { expect_all_same(collective_cases()); }
TEST(Control, GoesTheWayTheInterpreterGoes) { expect_all_same(control_cases()); }
TEST(Fragments, MultiplyAsTheInterpreterDoes) { expect_all_same(fragment_cases()); }
TEST(Lanes, AreCountedAsTheInterpreterCounts) { expect_all_same(lane_cases()); }
TEST(Memory, IsReachedAsTheInterpreterReachesIt) { expect_all_same(memory_cases()); }
TEST(Transfers, MoveWhatTheInterpreterMoves) { expect_all_same(transfer_cases()); }

// One thread runs a workgroup part by part, so it cannot take two ways at once.
TEST(Collectives, WhereSubgroupsMayGoDifferentWaysAreRefused) {
  std::string text = kernel_text(1, R"(  %w = buffer.view %b0[%base] : buffer -> view<8xi32>
  %one = scalar.constant 1 : i32
  %id = kernel.subgroup.id : index
  %zero = index.constant 0 : index
  %first = index.cmp eq, %id, %zero : index
  scf.if %first {
    %sum = kernel.subgroup.reduce<addi> %one : i32
    view.store %sum, %w[%i] : i32, view<8xi32>
  }
)",
                                 {{1, 1, 1}, {8, 1, 1}});
  const std::string plain = "kernel.def @k()";
  text.replace(text.find(plain), plain.size(), "kernel.def target(@wide) @k()");
  Program program("target.generic<reference> @wide {subgroup_size = 4}\n" + text);
  ASSERT_TRUE(program.good());
  EXPECT_FALSE(program.compiles());
  EXPECT_NE(program.problems.find("may go different ways around a collective"), std::string::npos)
      << program.problems;
}

}  // namespace
}  // namespace loom::ops
