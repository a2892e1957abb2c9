#include "loom/runtime/cpu/pair.h"

#include <gtest/gtest.h>

#include <initializer_list>

namespace loom {
namespace {

using Way = PairTrials::Way;

bool decide(PairChoice& choice, std::initializer_list<uint64_t> alone,
            std::initializer_list<uint64_t> shared) {
  for (const uint64_t time : alone) choice.measured(false, time);
  for (const uint64_t time : shared) choice.measured(true, time);
  return choice.decide();
}

TEST(PairChoice, SharesWhatTwoThreadsDoSoonerByAMargin) {
  PairChoice choice;
  EXPECT_FALSE(choice.shares());
  EXPECT_FALSE(decide(choice, {2000, 2000}, {1950, 1950}));
  EXPECT_FALSE(choice.shares());
  EXPECT_TRUE(decide(choice, {2000, 2000}, {1500, 1500}));
  EXPECT_TRUE(choice.shares());
}

TEST(PairChoice, StaysUntilItLoses) {
  PairChoice choice;
  decide(choice, {2000, 2000}, {1500, 1500});
  EXPECT_FALSE(decide(choice, {2000, 2000}, {1990, 1990}));
  EXPECT_TRUE(choice.shares());
  EXPECT_TRUE(decide(choice, {2000, 2000}, {2010, 2010}));
  EXPECT_FALSE(choice.shares());
}

TEST(PairChoice, OneLuckyTimeDecidesNothing) {
  PairChoice choice;
  EXPECT_FALSE(decide(choice, {2000, 2000, 2000}, {500, 2100, 2100}));
  EXPECT_FALSE(choice.shares());
  EXPECT_TRUE(decide(choice, {500, 2000, 9000}, {1000, 1000, 900'000'000'000}));
}

TEST(PairChoice, WithoutTimesOfBothWaysItStays) {
  PairChoice choice;
  decide(choice, {2000, 2000}, {1500, 1500});
  EXPECT_FALSE(decide(choice, {1000, 1000}, {}));
  EXPECT_FALSE(decide(choice, {1000, 1000}, {3000}));
  EXPECT_TRUE(choice.shares());
}

// Issues until the next trial has ended; each way's issues of it are counted.
struct Trial {
  uint32_t chosen = 0;
  uint32_t alone = 0;
  uint32_t shared = 0;
};
Trial next_trial(PairTrials& trials, bool candidates, uint32_t missed = 0) {
  Trial counted;
  for (uint32_t issue = 0; issue < 1'000'000; ++issue) {
    if (trials.next()) break;
    switch (trials.way()) {
      case Way::Chosen:
        ++counted.chosen;
        break;
      case Way::Alone:
        ++counted.alone;
        if (candidates) trials.saw_candidate();
        break;
      case Way::Shared:
        if (counted.shared++ < missed) trials.missed_partner();
        break;
    }
  }
  return counted;
}

TEST(PairTrials, TryBothWaysAndPauseLongerWhileNothingChanges) {
  PairTrials trials;
  uint32_t pause = 0;
  for (int i = 0; i < 10; ++i) {
    const Trial trial = next_trial(trials, true);
    EXPECT_EQ(trial.alone, PairTrials::kTrial);
    EXPECT_EQ(trial.shared, PairTrials::kTrial);
    EXPECT_GE(trial.chosen, pause);
    pause = trial.chosen;
    trials.decided(false);
  }
  EXPECT_EQ(pause, PairTrials::kLongestPause - 1);
  next_trial(trials, true);
  trials.decided(true);
  EXPECT_EQ(next_trial(trials, true).chosen, PairTrials::kFirstPause - 1);
}

TEST(PairTrials, NothingToShareIsNotShared) {
  PairTrials trials;
  const Trial trial = next_trial(trials, false);
  EXPECT_EQ(trial.alone, PairTrials::kTrial);
  EXPECT_EQ(trial.shared, 0u);
}

TEST(PairTrials, IssuesWithoutThePartnerDoNotCount) {
  PairTrials trials;
  EXPECT_EQ(next_trial(trials, true, 5).shared, 5 + PairTrials::kTrial);
  trials.decided(true);
  EXPECT_EQ(next_trial(trials, true, 1'000'000).shared, PairTrials::kPatience);
}

}  // namespace
}  // namespace loom
