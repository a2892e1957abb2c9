// The paired gain and a confidence interval of it that may be looked at after every pair.
#pragma once

#include <cstddef>

namespace hyperloom::integrate {

// In percent of A's throughput. While nothing is known yet, `bounded` is false and the interval is
// the whole line.
struct GainInterval {
  double point = 0;
  double low = 0;
  double high = 0;
  size_t pairs = 0;
  bool bounded = false;

  // Closed: a bound of exactly 0 contains it.
  bool contains_zero() const { return !bounded || (low <= 0 && high >= 0); }
  double half_width() const { return (high - low) / 2; }
};

// Collects pairs (A, B) of throughputs. The gain is that of the mean log ratio, so that A against B
// and B against A are each other's reverse.
//
// The interval is a confidence sequence: with probability at least 1 - alpha it contains the true
// gain at *every* number of pairs, so stopping at a look that pleases does not spoil it. It inverts
// the test martingale for normal observations of unknown variance that mixes the effect size over
// N(0, 1/c^2) with the right Haar prior on the scale (Lai 1976; Wang and Ramdas, "Anytime-valid
// t-tests and confidence sequences for Gaussian means with unknown variance"), whose bounds have a
// closed form and need no guess of the noise.
class PairedGain {
 public:
  static constexpr double kAlpha = 0.05;
  explicit PairedGain(double alpha = kAlpha) : alpha_(alpha) {}

  // Both positive and finite.
  void add(double a, double b);
  GainInterval interval() const;
  size_t pairs() const { return count_; }
  // Geometric means of what was added, 0 when there is nothing.
  double mean_a() const;
  double mean_b() const;

 private:
  double alpha_;
  size_t count_ = 0;
  double mean_ = 0;       // of log(b / a)
  double deviation_ = 0;  // sum of squared differences from the mean
  double log_a_ = 0;      // sums
  double log_b_ = 0;
};

}  // namespace hyperloom::integrate
