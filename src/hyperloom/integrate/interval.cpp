#include "hyperloom/integrate/interval.h"

#include <cmath>

#include "loom/base/check.h"

namespace hyperloom::integrate {
namespace {

// Of the mixture over effect sizes: gains worth keeping are of the order of the noise of one pair.
constexpr double kPriorPrecision = 1.0;

double percent(double log_ratio) { return 100 * std::expm1(log_ratio); }

}  // namespace

void PairedGain::add(double a, double b) {
  LOOM_CHECK(a > 0 && b > 0 && std::isfinite(a) && std::isfinite(b),
             "throughputs of a pair are positive");
  ++count_;
  const double ratio = std::log(b / a);
  const double step = ratio - mean_;
  mean_ += step / static_cast<double>(count_);
  deviation_ += step * (ratio - mean_);
  log_a_ += std::log(a);
  log_b_ += std::log(b);
}

GainInterval PairedGain::interval() const {
  GainInterval result{.point = percent(mean_), .pairs = count_};
  result.low = -100;
  result.high = HUGE_VAL;
  if (count_ == 0) return result;
  const double n = static_cast<double>(count_);
  const double c2 = kPriorPrecision;
  // The martingale stays below 1/alpha for means m with
  //   1 - n^2 d^2 / ((n + c2) (Q + n d^2)) > k,  d = mean - m, Q = deviation.
  const double k = std::exp(std::log(alpha_ * alpha_ * c2 / (n + c2)) / n);
  const double room = k * (n + c2) - c2;
  if (!(room > 0)) return result;  // too few pairs to exclude anything
  const double half = std::sqrt((n + c2) * (1 - k) * deviation_ / (n * room));
  result.low = percent(mean_ - half);
  result.high = percent(mean_ + half);
  result.bounded = true;
  return result;
}

double PairedGain::mean_a() const {
  return count_ == 0 ? 0 : std::exp(log_a_ / static_cast<double>(count_));
}
double PairedGain::mean_b() const {
  return count_ == 0 ? 0 : std::exp(log_b_ / static_cast<double>(count_));
}

}  // namespace hyperloom::integrate
