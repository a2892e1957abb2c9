#include "hyperloom/optimize/clock.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

namespace hyperloom::optimize {
namespace {

using std::chrono::milliseconds;

// Section 3.2: "stands still while it waits for the device lane".
TEST(LadderClock, StandsStillWhileWaiting) {
  LadderClock clock(1000, {});
  const LadderClock::Waiting outer(clock);
  const double before = clock.seconds_left();
  {
    const LadderClock::Waiting inner(clock);
    std::this_thread::sleep_for(milliseconds(5));
  }
  EXPECT_EQ(clock.seconds_left(), before);
}

TEST(LadderClock, RunsWhenNobodyWaits) {
  LadderClock clock(1000, {});
  const double before = clock.seconds_left();
  std::this_thread::sleep_for(milliseconds(2));
  EXPECT_LT(clock.seconds_left(), before);
  EXPECT_FALSE(clock.passed());
  EXPECT_TRUE(LadderClock(0, {}).passed());
}

TEST(LadderClock, EndsWithTheSession) {
  LadderClock clock(1000, Deadline::in_seconds(0));
  const LadderClock::Waiting waiting(clock);
  EXPECT_TRUE(clock.passed());
  EXPECT_TRUE(clock.deadline().passed());
}

TEST(QuietMachine, TimedWorkIsAlone) {
  QuietMachine machine;
  std::atomic<int> busy = 0;
  std::atomic<int> timing = 0;
  std::atomic<bool> overlap = false;
  std::vector<std::jthread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&, i] {
      for (int round = 0; round < 200; ++round) {
        const bool timed = (i + round) % 4 == 0;
        const QuietMachine::Turn turn(machine, timed);
        auto& own = timed ? timing : busy;
        ++own;
        if (timing > 1 || (timing > 0 && busy > 0)) overlap = true;
        --own;
      }
    });
  }
  threads.clear();
  EXPECT_FALSE(overlap);
}

TEST(QuietMachine, BuildsRunSideBySide) {
  QuietMachine machine;
  const QuietMachine::Turn first(machine, false);
  std::jthread other([&] { const QuietMachine::Turn second(machine, false); });
  other.join();
}

}  // namespace
}  // namespace hyperloom::optimize
