#include "hyperloom/integrate/decision.h"

#include <gtest/gtest.h>

#include <cmath>

namespace hyperloom::integrate {
namespace {

GainInterval interval(double point, double low, double high) {
  return {.point = point, .low = low, .high = high, .pairs = 30, .bounded = true};
}
GainInterval measured(double a, double b, double half) {
  const double point = (b - a) / a * 100;
  return interval(point, point - half, point + half);
}
std::string at_end(const GainInterval& gain, double threshold = 1.0) {
  if (gain_rule_holds(gain, threshold)) return "KEEP";
  const auto judged = judge_gain(gain, threshold, true);
  return judged ? std::string(decision_name(judged->decision)) + " " + judged->reason : "open";
}

TEST(Spec_14, TheThresholdItselfIsEnough) {
  EXPECT_EQ(at_end(measured(1000, 1010, 0.5)), "KEEP");
  PairedGain pairs;
  for (int i = 0; i < 8; ++i) pairs.add(1000, 1010);
  EXPECT_EQ(at_end(pairs.interval()), "KEEP");
}
TEST(Spec_14, AboveTheThresholdIsKept) { EXPECT_EQ(at_end(measured(1000, 1010.1, 0.5)), "KEEP"); }
TEST(Spec_14, JustBelowTheThresholdIsReverted) {
  EXPECT_EQ(at_end(measured(1000, 1009.9, 0.5)), "REVERT below_threshold");
}
TEST(Spec_14, AnIntervalThatContainsZeroIsNoise) {
  EXPECT_EQ(at_end(measured(1000, 1020, 2.5)), "REVERT within_noise");
}
TEST(Spec_14, ALossIsReverted) {
  EXPECT_EQ(at_end(measured(1000, 990, 0.5)), "REVERT below_threshold");
  EXPECT_EQ(at_end(measured(1000, 989.9, 0.5)), "REVERT below_threshold");
  EXPECT_EQ(at_end(measured(1000, 990, 1.5)), "REVERT within_noise");
}
TEST(Spec_14, FusionNeedsItsOwnThreshold) {
  EXPECT_EQ(at_end(measured(1000, 1029, 0.5), 3.0), "REVERT below_threshold");
  EXPECT_EQ(at_end(measured(1000, 1030, 0.5), 3.0), "KEEP");
}
TEST(Spec_7_4, ALowerBoundOfExactlyZeroIsNotEnough) {
  EXPECT_EQ(at_end(interval(2, 0, 4)), "REVERT within_noise");
}
TEST(Spec_7_4, TooFewPairsAreNoise) {
  EXPECT_EQ(at_end(GainInterval{.point = 5, .low = -100, .high = HUGE_VAL, .pairs = 2}),
            "REVERT within_noise");
}
TEST(Spec_7_4, MeasuringEndsEarlyOnlyWhenTheUpperBoundIsBelowTheThreshold) {
  EXPECT_FALSE(judge_gain(interval(0.5, -0.2, 1.2), 1.0, false));
  EXPECT_FALSE(judge_gain(interval(0.4, -0.2, 1.0), 1.0, false));
  const auto hopeless = judge_gain(interval(0.4, 0.1, 0.7), 1.0, false);
  ASSERT_TRUE(hopeless);
  EXPECT_EQ(hopeless->decision, Decision::Revert);
  EXPECT_EQ(hopeless->reason, "below_threshold");
}

TEST(Spec_14, PlausibilityBoundOfATenthAtOneAndAQuarter) {
  const double bound = plausible_gain_pct({{.e2e_share = 0.10, .speed_up = 1.25}}) + 0.3;
  EXPECT_NEAR(bound, 2.34, 0.005);
  EXPECT_FALSE(implausible(interval(2.2, 1.5, 2.9), bound));
  EXPECT_TRUE(implausible(interval(5.1, 4.5, 5.7), bound));
}
TEST(Spec_14, PlausibilityBoundOfAHalfAtTwo) {
  EXPECT_NEAR(plausible_gain_pct({{.e2e_share = 0.5, .speed_up = 2}}), 33.333, 0.001);
}
TEST(Spec_7_4, SeveralKernelsAddTheirSavedTime) {
  EXPECT_NEAR(
      plausible_gain_pct({{.e2e_share = 0.2, .speed_up = 2}, {.e2e_share = 0.1, .speed_up = 1.25}}),
      100 * (1 / 0.88 - 1), 1e-9);
}
TEST(Spec_7_4, WithoutASpeedUpTheRooflineStandsIn) {
  EXPECT_NEAR(plausible_gain_pct({{.e2e_share = 0.5, .roofline_pct = 50}}), 100 * (1 / 0.75 - 1),
              1e-9);
  // Nothing is known: the kernel's time can at most go away.
  EXPECT_NEAR(plausible_gain_pct({{.e2e_share = 0.5}}), 100, 1e-9);
  EXPECT_TRUE(std::isinf(plausible_gain_pct({{.e2e_share = 1}})));
}
TEST(Spec_7_4, PastTheRooflineByMoreThanTheNoiseFloor) {
  EXPECT_FALSE(past_roofline({{.e2e_share = 0.5, .speed_up = 2, .roofline_pct = 50.1}}, 0.3));
  EXPECT_TRUE(past_roofline({{.e2e_share = 0.5, .speed_up = 2, .roofline_pct = 51}}, 0.3));
  EXPECT_FALSE(past_roofline({{.e2e_share = 0.5, .roofline_pct = 51}}, 0.3));
}
TEST(Spec_7_4, AnUnclearGainIsNotImplausible) { EXPECT_FALSE(implausible(interval(5, -1, 11), 2)); }

std::string accuracy(std::optional<double> baseline, std::optional<double> candidate,
                     AccuracyRule rule = {}) {
  const AccuracyVerdict verdict = judge_accuracy({baseline, candidate}, rule);
  if (verdict.gate_off) return "off";
  if (!verdict.stops) return "pass";
  return std::string(decision_name(verdict.stops->decision)) + " " + verdict.stops->reason;
}

TEST(Spec_14, AccuracyMayDropByFiveHundredths) {
  EXPECT_EQ(accuracy(0.80, 0.76), "pass");
  EXPECT_EQ(accuracy(0.80, 0.75), "pass");
  EXPECT_EQ(accuracy(0.80, 0.74), "REVERT accuracy_regression");
  EXPECT_EQ(accuracy(0.80, 0.95), "pass");
}
TEST(Spec_7_4, AMissingAccuracyWaitsForReview) {
  EXPECT_EQ(accuracy(std::nullopt, 0.8), "NEEDS_REVIEW accuracy_evidence_missing");
  EXPECT_EQ(accuracy(0.8, std::nullopt), "NEEDS_REVIEW accuracy_evidence_missing");
}
TEST(Spec_7_4, WithTheGateOffAMissingAccuracyPasses) {
  EXPECT_EQ(accuracy(std::nullopt, 0.8, {.required = false}), "off");
  EXPECT_EQ(accuracy(0.80, 0.74, {.required = false}), "REVERT accuracy_regression");
  EXPECT_EQ(accuracy(std::nullopt, 0.8, {.required = false, .framework_apply = true}),
            "NEEDS_REVIEW accuracy_evidence_missing");
}
TEST(Spec_7_4, WrongResultsAreReverted) {
  const AccuracyVerdict verdict =
      judge_accuracy({.baseline = 1, .candidate = 1, .correct = false}, {});
  ASSERT_TRUE(verdict.stops);
  EXPECT_EQ(verdict.stops->decision, Decision::Revert);
  EXPECT_EQ(verdict.stops->reason, "correctness_failed");
}

}  // namespace
}  // namespace hyperloom::integrate
