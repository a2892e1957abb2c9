#include "loom/check/statistics.h"

#include <gtest/gtest.h>

#include <cmath>

#include "loom/runtime/parameters/generate.h"

namespace loom::check {
namespace {

// Numbers from a counter, so that every machine simulates the same.
class Dice {
 public:
  explicit Dice(uint64_t seed) : seed_(seed) {}
  double uniform() { return static_cast<double>(random_word(seed_, next_++) >> 11) * 0x1p-53; }
  double normal() {
    const double radius = std::sqrt(-2 * std::log(1 - uniform()));
    return radius * std::cos(6.283185307179586 * uniform());
  }

 private:
  uint64_t seed_;
  uint64_t next_ = 0;
};

// A machine whose speed wanders, jumps between two levels, and is interrupted.
struct Machine {
  double noise = 0.02;       // of each time
  double wander = 0.0;       // of the speed from time to time
  double trend = 0.0;        // over the whole series
  double jump = 0.0;         // between the levels
  double interruptions = 0;  // share of the times
};

struct Series {
  std::vector<double> a, b;
};

Series simulate(const Machine& machine, double slowdown, size_t pairs, Interleave interleave,
                uint64_t seed) {
  Dice dice(seed);
  double level = 0;
  double drift = 0;
  Series made;
  const size_t total = 2 * pairs + (interleave == Interleave::Ababa ? 1 : 0);
  for (size_t i = 0; i < total; ++i) {
    drift += machine.wander * dice.normal() + machine.trend / static_cast<double>(total);
    if (dice.uniform() < 0.01) level = machine.jump - level;
    double time = 1000 * std::exp(drift + level + machine.noise * dice.normal());
    if (dice.uniform() < machine.interruptions) time *= 1 + 9 * dice.uniform();
    if (i % 2 == 1) {
      made.b.push_back(time * slowdown);
    } else {
      made.a.push_back(time);
    }
  }
  return made;
}

int seen(const Machine& machine, double slowdown, Interleave interleave) {
  int count = 0;
  for (uint64_t trial = 0; trial < 100; ++trial) {
    const Series series = simulate(machine, slowdown, 1500, interleave, trial * 7919 + 1);
    const Difference found = difference(series.a, series.b, interleave);
    count += found.different && (found.ratio > 1) == (slowdown > 1) ? 1 : 0;
  }
  return count;
}

const Machine kQuiet{.noise = 0.01};
const Machine kDrifting{.noise = 0.03, .wander = 0.004, .trend = 0.6};
const Machine kJumping{.noise = 0.03, .jump = 0.25, .interruptions = 0.02};
const Machine kBusy{.noise = 0.06, .wander = 0.002, .jump = 0.15, .interruptions = 0.12};

TEST(Difference, EqualSidesDifferAtMostThreeTimesInAHundred) {
  for (const Machine& machine : {kQuiet, kDrifting, kJumping, kBusy}) {
    for (const Interleave interleave : {Interleave::Ababa, Interleave::RoundRobin}) {
      EXPECT_LE(seen(machine, 1, interleave), 3);
    }
  }
}

TEST(Difference, FivePercentIsSeenAtLeastNinetyFiveTimesInAHundred) {
  for (const Machine& machine : {kQuiet, kDrifting, kJumping, kBusy}) {
    for (const Interleave interleave : {Interleave::Ababa, Interleave::RoundRobin}) {
      EXPECT_GE(seen(machine, 1.05, interleave), 95);
      EXPECT_GE(seen(machine, 1 / 1.05, interleave), 95);
    }
  }
}

TEST(Difference, TheIntervalHoldsTheTruth) {
  int inside = 0;
  for (uint64_t trial = 0; trial < 300; ++trial) {
    const Series series = simulate(kBusy, 1.02, 800, Interleave::Ababa, trial + 5);
    const Difference found = difference(series.a, series.b, Interleave::Ababa);
    inside += found.low <= 1.02 && 1.02 <= found.high ? 1 : 0;
  }
  EXPECT_GE(inside, 291);
}

TEST(Difference, ASteadyDriftBiasesOnlyPairsThatAreNotEnclosed) {
  const Machine drifting{.noise = 0.0001, .trend = 60};
  const Series enclosed = simulate(drifting, 1, 800, Interleave::Ababa, 3);
  EXPECT_NEAR(difference(enclosed.a, enclosed.b, Interleave::Ababa).ratio, 1, 0.001);
  const Series open = simulate(drifting, 1, 800, Interleave::RoundRobin, 3);
  EXPECT_GT(difference(open.a, open.b, Interleave::RoundRobin).ratio, 1.02);
}

TEST(Difference, TheFloorRisesWithTheNoise) {
  const Series quiet = simulate(kQuiet, 1, 800, Interleave::Ababa, 1);
  const Series busy = simulate(kBusy, 1, 800, Interleave::Ababa, 1);
  const double low = difference(quiet.a, quiet.b, Interleave::Ababa).floor;
  EXPECT_GE(low, kLeastFloor);
  EXPECT_GT(difference(busy.a, busy.b, Interleave::Ababa).floor, low);
}

TEST(Summarize, PercentilesAreTimesOfTheSeries) {
  std::vector<double> times;
  for (int i = 100; i >= 0; --i) times.push_back(i);
  const Summary made = summarize(times);
  EXPECT_EQ(made.least, 0);
  EXPECT_EQ(made.p10, 10);
  EXPECT_EQ(made.p50, 50);
  EXPECT_EQ(made.p99, 99);
  EXPECT_EQ(made.most, 100);
  EXPECT_DOUBLE_EQ(made.mean, 50);
  EXPECT_DOUBLE_EQ(made.spread(), 1.6);
  EXPECT_EQ(summarize({}).count, 0u);
}

}  // namespace
}  // namespace loom::check
