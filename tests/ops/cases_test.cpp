// Every kernel computes on x86-64 what the interpreter says.
#include "cases.h"

namespace loom::ops {
namespace {

TEST(Apart, ThoseThatAreLeftGoOnAsInTheInterpreter) { expect_all_same(apart_cases()); }
TEST(Atomics, CombineExactlyAsTheInterpreterDoes) { expect_all_same(atomic_cases()); }
TEST(Collectives, MeetAsInTheInterpreter) { expect_all_same(collective_cases()); }
TEST(Control, GoesTheWayTheInterpreterGoes) { expect_all_same(control_cases()); }
TEST(Fragments, MultiplyAsTheInterpreterDoes) { expect_all_same(fragment_cases()); }
TEST(Lanes, AreCountedAsTheInterpreterCounts) { expect_all_same(lane_cases()); }
TEST(Memory, IsReachedAsTheInterpreterReachesIt) { expect_all_same(memory_cases()); }
TEST(Transfers, MoveWhatTheInterpreterMoves) { expect_all_same(transfer_cases()); }

}  // namespace
}  // namespace loom::ops
