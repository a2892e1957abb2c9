#include "loom/check/statistics.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "loom/base/check.h"

namespace loom::check {
namespace {

constexpr size_t kMostBlocks = 20;
constexpr size_t kLeastBlock = 5;  // pairs

// Student's t for 99%, two-sided, by degrees of freedom from 1 on.
constexpr std::array<double, kMostBlocks - 1> kStudent = {
    63.657, 9.925, 5.841, 4.604, 4.032, 3.707, 3.499, 3.355, 3.250, 3.169,
    3.106,  3.055, 3.012, 2.977, 2.947, 2.921, 2.898, 2.878, 2.861};

double median(std::span<double> values) {
  const size_t middle = values.size() / 2;
  std::ranges::nth_element(values, values.begin() + static_cast<ptrdiff_t>(middle));
  const double upper = values[middle];
  if (values.size() % 2 != 0) return upper;
  return (upper +
          *std::max_element(values.begin(), values.begin() + static_cast<ptrdiff_t>(middle))) /
         2;
}

struct Estimate {
  double center = 0;  // logarithms of ratios
  double reach = 0;   // half of the interval
  double far() const { return std::abs(center) + reach; }
};

Estimate estimate(std::vector<double> pairs) {
  const size_t blocks = std::min(kMostBlocks, pairs.size() / kLeastBlock);
  std::vector<double> medians;
  for (size_t i = 0; i < blocks; ++i) {
    const size_t begin = pairs.size() * i / blocks;
    const size_t end = pairs.size() * (i + 1) / blocks;
    medians.push_back(median(std::span(pairs).subspan(begin, end - begin)));
  }
  Estimate made;
  for (const double one : medians) made.center += one / static_cast<double>(blocks);
  double squares = 0;
  for (const double one : medians) squares += (one - made.center) * (one - made.center);
  const auto count = static_cast<double>(blocks);
  made.reach = kStudent[blocks - 2] * std::sqrt(squares / (count - 1) / count);
  return made;
}

// Each b with the a before it and, in Ababa, also with the one behind it: what a drift adds to one
// it takes from the other, and an interruption is as likely on both sides of a pair.
std::vector<double> pair_up(std::span<const double> a, std::span<const double> b,
                            Interleave interleave) {
  std::vector<double> pairs;
  pairs.reserve(2 * b.size());
  for (size_t i = 0; i < b.size() && i < a.size(); ++i) {
    const double time = std::log(b[i]);
    pairs.push_back(time - std::log(a[i]));
    if (interleave == Interleave::Ababa && i + 1 < a.size()) {
      pairs.push_back(time - std::log(a[i + 1]));
    }
  }
  return pairs;
}

// A side against itself, as far as it would reach over as many pairs as there are between two
// sides.
double floor_of(std::span<const double> side, Interleave interleave) {
  std::vector<double> even;
  std::vector<double> odd;
  for (size_t i = 0; i < side.size(); ++i) (i % 2 == 0 ? even : odd).push_back(side[i]);
  return estimate(pair_up(even, odd, interleave)).far() / std::numbers::sqrt2;
}

}  // namespace

Summary summarize(std::span<const double> times) {
  Summary made;
  made.count = times.size();
  if (times.empty()) return made;
  std::vector<double> sorted(times.begin(), times.end());
  std::ranges::sort(sorted);
  const auto at = [&](double part) {
    return sorted[static_cast<size_t>(std::lround(part * static_cast<double>(sorted.size() - 1)))];
  };
  made.least = sorted.front();
  made.p10 = at(0.10);
  made.p50 = at(0.50);
  made.p90 = at(0.90);
  made.p99 = at(0.99);
  made.most = sorted.back();
  for (const double one : sorted) made.mean += one / static_cast<double>(sorted.size());
  return made;
}

Difference difference(std::span<const double> a, std::span<const double> b, Interleave interleave) {
  LOOM_CHECK(a.size() >= kLeastPairs && b.size() >= kLeastPairs, "a comparison has enough pairs");
  const std::vector<double> pairs = pair_up(a, b, interleave);
  const Estimate found = estimate(pairs);
  const double floor =
      std::max({floor_of(a, interleave), floor_of(b, interleave), std::log1p(kLeastFloor)});
  Difference made;
  made.pairs = pairs.size();
  made.ratio = std::exp(found.center);
  made.low = std::exp(found.center - found.reach);
  made.high = std::exp(found.center + found.reach);
  made.floor = std::expm1(floor);
  made.different = std::abs(found.center) - found.reach > floor;
  return made;
}

}  // namespace loom::check
