#include "hyperloom/integrate/interval.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <random>

namespace hyperloom::integrate {
namespace {

constexpr size_t kPairs = 60;
constexpr int kRuns = 4000;

using Noise = std::function<double(std::mt19937_64&)>;

double gaussian(std::mt19937_64& random) { return std::normal_distribution<double>()(random); }

// One sample in ten is disturbed by another process.
double disturbed(std::mt19937_64& random) {
  const double base = gaussian(random);
  const bool hit = std::uniform_real_distribution<double>()(random) < 0.1;
  return hit ? base - std::exponential_distribution<double>(0.2)(random) : base;
}

double laplace(std::mt19937_64& random) {
  std::exponential_distribution<double> side;
  return side(random) - side(random);
}

// Throughput of one sample around `level`, with `noise` per cent of spread.
double sample(double level, double noise, const Noise& shape, std::mt19937_64& random) {
  return level * std::exp(noise / 100 * shape(random));
}

// In how many of kRuns an interval of any look excludes the true gain.
int misses(double gain, double noise, const Noise& shape) {
  std::mt19937_64 random(20240917);
  int count = 0;
  for (int run = 0; run < kRuns; ++run) {
    PairedGain pairs;
    for (size_t n = 0; n < kPairs; ++n) {
      pairs.add(sample(1000, noise, shape, random),
                sample(1000 * (1 + gain / 100), noise, shape, random));
      const GainInterval now = pairs.interval();
      if (now.bounded && (gain < now.low || gain > now.high)) {
        ++count;
        break;
      }
    }
  }
  return count;
}

TEST(Interval, CoversAtEveryLookWithGaussianNoise) {
  EXPECT_LE(misses(0, 2, gaussian), kRuns * PairedGain::kAlpha);
  EXPECT_LE(misses(5, 2, gaussian), kRuns * PairedGain::kAlpha);
}

TEST(Interval, CoversAtEveryLookWithHeavyTails) {
  EXPECT_LE(misses(0, 2, laplace), kRuns * PairedGain::kAlpha);
  EXPECT_LE(misses(0, 1, disturbed), kRuns * PairedGain::kAlpha);
}

// The whole rule: stopped at the first look at which something would be kept.
TEST(Interval, AgainstItselfAlmostNothingIsKeptUnderRepeatedLooks) {
  std::mt19937_64 random(7);
  int kept = 0;
  for (int run = 0; run < kRuns; ++run) {
    PairedGain pairs;
    for (size_t n = 0; n < kPairs; ++n) {
      pairs.add(sample(1000, 3, gaussian, random), sample(1000, 3, gaussian, random));
      const GainInterval now = pairs.interval();
      if (now.bounded && now.low > 0 && now.point >= 1) {
        ++kept;
        break;
      }
    }
  }
  // Two-sided, so one side has half of alpha.
  EXPECT_LE(kept, kRuns * PairedGain::kAlpha / 2);
}

TEST(Interval, FindsAGainOfFivePercentWithinTheBudget) {
  struct Case {
    double noise;
    Noise shape;
  };
  for (const Case& each : {Case{3, gaussian}, Case{1.5, disturbed}}) {
    std::mt19937_64 random(11);
    int found = 0;
    size_t looks = 0;
    constexpr int kTries = 1000;
    for (int run = 0; run < kTries; ++run) {
      PairedGain pairs;
      while (pairs.pairs() < kPairs) {
        pairs.add(sample(1000, each.noise, each.shape, random),
                  sample(1050, each.noise, each.shape, random));
        const GainInterval now = pairs.interval();
        if (now.bounded && now.low > 0) {
          ++found;
          break;
        }
      }
      looks += pairs.pairs();
    }
    EXPECT_GE(found, kTries * 95 / 100) << each.noise;
    EXPECT_LE(looks / kTries, kPairs / 2) << each.noise;
  }
}

TEST(Interval, KnowsNothingBeforeAFewPairs) {
  PairedGain pairs;
  EXPECT_FALSE(pairs.interval().bounded);
  EXPECT_TRUE(pairs.interval().contains_zero());
  pairs.add(1000, 2000);
  pairs.add(1000, 2000);
  EXPECT_FALSE(pairs.interval().bounded);
  EXPECT_NEAR(pairs.interval().point, 100, 1e-9);
}

TEST(Interval, IsTheReverseWhenTheSidesAreExchanged) {
  PairedGain forward;
  PairedGain backward;
  std::mt19937_64 random(3);
  for (int i = 0; i < 20; ++i) {
    const double a = sample(1000, 2, gaussian, random);
    const double b = sample(1100, 2, gaussian, random);
    forward.add(a, b);
    backward.add(b, a);
  }
  const GainInterval there = forward.interval();
  const GainInterval back = backward.interval();
  EXPECT_NEAR((1 + there.low / 100) * (1 + back.high / 100), 1, 1e-9);
  EXPECT_NEAR((1 + there.point / 100) * (1 + back.point / 100), 1, 1e-9);
  EXPECT_NEAR(forward.mean_a(), backward.mean_b(), 1e-6);
}

TEST(Interval, ExactMeasurementsHaveAnExactInterval) {
  PairedGain pairs;
  for (int i = 0; i < 6; ++i) pairs.add(1000, 1010);
  const GainInterval now = pairs.interval();
  ASSERT_TRUE(now.bounded);
  EXPECT_NEAR(now.low, 1, 1e-6);
  EXPECT_NEAR(now.high, 1, 1e-6);
}

}  // namespace
}  // namespace hyperloom::integrate
