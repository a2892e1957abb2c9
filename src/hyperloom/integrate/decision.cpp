#include "hyperloom/integrate/decision.h"

#include <cmath>

namespace hyperloom::integrate {
namespace {

// Decimal thresholds are not exact in binary: 0.80 - 0.75 is more than 0.05 in doubles.
constexpr double kEpsilon = 1e-9;
constexpr double kAccuracyDrop = 0.05;

// The part of the kernel's time that goes away, 0 to 1, negative for a loss.
double saved_part(const ChangedKernel& kernel) {
  if (kernel.speed_up && *kernel.speed_up > 0) return 1 - 1 / *kernel.speed_up;
  if (kernel.roofline_pct) return 1 - std::min(*kernel.roofline_pct, 100.0) / 100;
  return 1;
}

}  // namespace

std::string_view decision_name(Decision decision) {
  switch (decision) {
    case Decision::Keep:
      return "KEEP";
    case Decision::Revert:
      return "REVERT";
    case Decision::NeedsReview:
      break;
  }
  return "NEEDS_REVIEW";
}

double plausible_gain_pct(const std::vector<ChangedKernel>& kernels) {
  double saved = 0;
  for (const ChangedKernel& kernel : kernels) saved += kernel.e2e_share * saved_part(kernel);
  return saved >= 1 ? HUGE_VAL : 100 * (1 / (1 - saved) - 1);
}

bool past_roofline(const std::vector<ChangedKernel>& kernels, double noise_floor_pct) {
  for (const ChangedKernel& kernel : kernels) {
    if (!kernel.roofline_pct || !kernel.speed_up) continue;
    if (*kernel.roofline_pct * *kernel.speed_up > 100 + noise_floor_pct + kEpsilon) return true;
  }
  return false;
}

bool gain_rule_holds(const GainInterval& gain, double keep_threshold_pct) {
  return gain.bounded && gain.low > 0 && gain.point >= keep_threshold_pct - kEpsilon;
}

std::optional<Judgement> judge_gain(const GainInterval& gain, double keep_threshold_pct,
                                    bool budget_ended) {
  if (gain_rule_holds(gain, keep_threshold_pct)) return std::nullopt;
  const bool hopeless = gain.bounded && gain.high < keep_threshold_pct - kEpsilon;
  if (!budget_ended && !hopeless) return std::nullopt;
  return Judgement{Decision::Revert, gain.contains_zero() ? "within_noise" : "below_threshold"};
}

bool implausible(const GainInterval& gain, double plausible_max_pct) {
  return gain.bounded && gain.low > 0 && gain.point > plausible_max_pct + kEpsilon;
}

AccuracyVerdict judge_accuracy(const AccuracyRound& round, const AccuracyRule& rule) {
  if (!round.correct) return {Judgement{Decision::Revert, "correctness_failed"}};
  if (!round.baseline || !round.candidate) {
    if (!rule.required && !rule.framework_apply) return {std::nullopt, true};
    return {Judgement{Decision::NeedsReview, "accuracy_evidence_missing"}};
  }
  if (*round.baseline - *round.candidate > kAccuracyDrop + kEpsilon) {
    return {Judgement{Decision::Revert, "accuracy_regression"}};
  }
  return {};
}

}  // namespace hyperloom::integrate
