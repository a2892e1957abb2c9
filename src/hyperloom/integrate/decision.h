// What becomes of a candidate whose end-to-end gain was measured: one rule for every kind of
// change.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hyperloom/integrate/interval.h"

namespace hyperloom::integrate {

enum class Decision { Keep, Revert, NeedsReview };
std::string_view decision_name(Decision decision);  // "KEEP", "REVERT", "NEEDS_REVIEW"

struct Judgement {
  Decision decision = Decision::NeedsReview;
  std::string reason;
};

// A kernel (or a fused region) that the candidate changes.
struct ChangedKernel {
  double e2e_share = 0;            // of end-to-end time, 0 to 1
  std::optional<double> speed_up;  // measured micro speed-up
  // Efficiency before the change against the roofline, uncapped, in percent.
  std::optional<double> roofline_pct;
  std::string name;  // symbol, where it may be measured once more
};

// The most that throughput can gain, in percent, without the noise floor. A kernel whose speed-up
// was not measured counts with the time at its roofline, and with none at all where the roofline
// is unknown. Infinite where the kernels take all of the time.
double plausible_gain_pct(const std::vector<ChangedKernel>& kernels);
// Whether one of the kernels would run past its roofline by more than the noise floor.
bool past_roofline(const std::vector<ChangedKernel>& kernels, double noise_floor_pct);

// The gain rule alone: the interval lies above 0 and the point estimate is at the threshold or
// above. Both in percent.
bool gain_rule_holds(const GainInterval& gain, double keep_threshold_pct);
// REVERT with its reason where the rule can or may not hold any more; nothing while more pairs may
// still change that.
std::optional<Judgement> judge_gain(const GainInterval& gain, double keep_threshold_pct,
                                    bool budget_ended);
// Measured clearly above 0 and above the bound (which includes the noise floor).
bool implausible(const GainInterval& gain, double plausible_max_pct);

struct AccuracyRound {
  std::optional<double> baseline;   // A's, 0 to 1
  std::optional<double> candidate;  // B's
  bool correct = true;              // B agrees with the reference wherever A does
};
struct AccuracyRule {
  bool required = true;          // INFERENCE_OPTIMIZER_REQUIRE_KERNEL_ACCURACY
  bool framework_apply = false;  // framework apply-back: strict whatever `required` says
};
struct AccuracyVerdict {
  std::optional<Judgement> stops;  // empty: passed
  bool gate_off = false;           // a missing value passed because the gate is off
};
AccuracyVerdict judge_accuracy(const AccuracyRound& round, const AccuracyRule& rule);

}  // namespace hyperloom::integrate
