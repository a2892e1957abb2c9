// What series of times say.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace loom::check {

// Of times of one operation, in the unit of the times. Percentiles are values of the series.
struct Summary {
  uint64_t count = 0;
  double least = 0;
  double mean = 0;
  double p10 = 0;
  double p50 = 0;
  double p90 = 0;
  double p99 = 0;
  double most = 0;

  // (p90 - p10) / p50
  double spread() const { return p50 > 0 ? (p90 - p10) / p50 : 0; }
};
Summary summarize(std::span<const double> times);

// The order in which two sides were timed.
enum class Interleave : uint8_t {
  Ababa,       // a b a b a: each b stands between two a, which cancels a steady drift
  RoundRobin,  // a b, a b
};

// How the times of b relate to those of a. Ratios are b / a.
struct Difference {
  double ratio = 1;
  double low = 1;  // the 99% interval of the ratio
  double high = 1;
  // What the same estimate says of a side against itself, as |ratio - 1|: smaller differences
  // cannot be told from noise. At least kLeastFloor.
  double floor = 0;
  uint64_t pairs = 0;
  // The whole interval lies beyond the floor.
  bool different = false;
};

inline constexpr double kLeastFloor = 0.005;
inline constexpr uint64_t kLeastPairs = 40;

// Positive times in the order in which they were taken, at least kLeastPairs of each side; with
// Ababa `a` has one more than `b`.
//
// Each b is paired with each of its neighbours, in logarithms. The series of pairs is cut into
// blocks along time, each block gives its median, and the interval is Student's over the blocks: a
// median shrugs off interruptions, and blocks stay independent where single pairs are not. The
// floor is the far end of the interval that every other time of one side gives against those
// between, scaled to as many pairs.
Difference difference(std::span<const double> a, std::span<const double> b, Interleave interleave);

}  // namespace loom::check
