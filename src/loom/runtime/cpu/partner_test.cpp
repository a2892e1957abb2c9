#include "loom/runtime/cpu/partner.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>
#include <vector>

namespace loom {
namespace {

void increment(void* number) { ++*static_cast<int*>(number); }

TEST(Partner, EveryAcceptedJobIsDoneOnceOrTakenBack) {
  Partner partner;
  int done = 0;
  int taken_back = 0;
  for (int i = 0; i < 20'000; ++i) {
    ASSERT_TRUE(partner.offer(increment, &done));
    if (partner.take_back()) ++taken_back;
  }
  EXPECT_EQ(done + taken_back, 20'000);
}

TEST(Partner, WakesFromSleep) {
  if (std::thread::hardware_concurrency() < 2) GTEST_SKIP() << "needs two cores";
  Partner partner;
  std::atomic<int> begun = 0;
  for (int i = 1; i <= 3; ++i) {
    std::this_thread::sleep_for(std::chrono::nanoseconds(2 * Partner::kStandby));
    ASSERT_TRUE(partner.offer([](void* at) { ++*static_cast<std::atomic<int>*>(at); }, &begun));
    while (begun.load() < i) std::this_thread::yield();
    EXPECT_FALSE(partner.take_back());
  }
}

TEST(Partner, ServesOneCallerAtATime) {
  Partner partner;
  std::vector<std::thread> callers;
  std::atomic<int> wrong = 0;
  for (int caller = 0; caller < 4; ++caller) {
    callers.emplace_back([&] {
      int done = 0;
      int expected = 0;
      for (int i = 0; i < 5000; ++i) {
        if (!partner.offer(increment, &done)) continue;
        if (!partner.take_back()) ++expected;
        if (done != expected) ++wrong;
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(wrong.load(), 0);
}

}  // namespace
}  // namespace loom
