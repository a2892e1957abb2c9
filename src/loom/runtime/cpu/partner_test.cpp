#include "loom/runtime/cpu/partner.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>
#include <vector>

#include "loom/runtime/cpu/two_cores.h"

namespace loom {
namespace {

Partner::Job increment(int& number) {
  return {[](const uint64_t* words) { ++*reinterpret_cast<int*>(words[0]); },
          {reinterpret_cast<uintptr_t>(&number)}};
}

TEST(Partner, EveryAcceptedJobIsDoneOnceOrTakenBack) {
  Partner partner;
  int done = 0;
  int taken_back = 0;
  for (int i = 0; i < 20'000; ++i) {
    ASSERT_TRUE(partner.offer(increment(done)));
    if (partner.take_back()) ++taken_back;
  }
  EXPECT_EQ(done + taken_back, 20'000);
}

TEST(Partner, WakesFromSleep) {
  if (!has_two_cores()) GTEST_SKIP() << "needs two cores";
  Partner partner;
  std::atomic<int> begun = 0;
  for (int i = 1; i <= 3; ++i) {
    std::this_thread::sleep_for(std::chrono::nanoseconds(2 * Partner::kStandby));
    ASSERT_TRUE(partner.offer(
        {[](const uint64_t* words) { ++*reinterpret_cast<std::atomic<int>*>(words[0]); },
         {reinterpret_cast<uintptr_t>(&begun)}}));
    while (begun.load() < i) std::this_thread::yield();
    EXPECT_FALSE(partner.take_back());
  }
}

// Wants the partner until it has come: true, or false on a machine that is too busy for it. It
// stays for a short time only, so this thread does not leave its core meanwhile.
bool make_present(Partner& partner) {
  const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(5);
  while (!partner.present()) {
    if (std::chrono::steady_clock::now() > limit) return false;
    partner.want(Partner::kWorthWaking);
  }
  return true;
}

TEST(Partner, ComesWhenItIsWantedAndTakesOffers) {
  if (!has_two_cores()) GTEST_SKIP() << "needs two cores";
  Partner partner;
  std::atomic<int> done = 0;
  int offers = 0;
  for (const uint64_t idle : {uint64_t{0}, Partner::kSpin, 2 * Partner::kStandby}) {
    std::this_thread::sleep_for(std::chrono::nanoseconds(idle));
    if (!make_present(partner)) GTEST_SKIP() << "no core was free";
    ASSERT_TRUE(partner.offer(
        {[](const uint64_t* words) { ++*reinterpret_cast<std::atomic<int>*>(words[0]); },
         {reinterpret_cast<uintptr_t>(&done)}}));
    ++offers;
    while (done.load() < offers) {
      partner.want(Partner::kWorthWaking);
      std::this_thread::yield();
    }
    EXPECT_FALSE(partner.take_back());
  }
}

TEST(Partner, WithoutWorkItGoes) {
  Partner partner;
  EXPECT_FALSE(partner.present());
  EXPECT_EQ(partner.hand_over(), std::nullopt);
  if (!has_two_cores() || !make_present(partner)) GTEST_SKIP() << "no core was free";
  while (partner.present()) std::this_thread::yield();
  EXPECT_EQ(partner.hand_over(), std::nullopt);
}

TEST(Partner, MeasuresHandingOver) {
  if (!has_two_cores()) GTEST_SKIP() << "needs two cores";
  Partner partner;
  std::optional<uint64_t> measured;
  for (int i = 0; i < 100 && !measured; ++i) {
    if (!make_present(partner)) break;
    measured = partner.hand_over();
  }
  if (!measured) GTEST_SKIP() << "no core was free";
  EXPECT_GT(*measured, 0u);
  EXPECT_LT(*measured, uint64_t{1} << 40);
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
        if (!partner.offer(increment(done))) continue;
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
