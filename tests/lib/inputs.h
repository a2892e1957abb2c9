// Random shapes and numbers, with special values among them where that is wanted.
#pragma once

#include <initializer_list>
#include <limits>
#include <random>
#include <vector>

#include "../ops/both.h"

namespace loom::lib {

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();
inline constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// Numbers in a buffer, and what they are in double.
struct Numbers {
  ops::Buffer buffer;
  std::vector<double> values;
};

class Inputs {
 public:
  Inputs(uint64_t seed, bool with_specials) : random_(seed), with_specials_(with_specials) {}

  bool with_specials() const { return with_specials_; }
  uint64_t below(uint64_t limit) { return random_() % limit; }
  size_t pick(std::initializer_list<size_t> list) { return list.begin()[below(list.size())]; }
  // Below, at and beyond vectors of every width.
  size_t extent() {
    return pick({1, 2, 3, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 129});
  }
  // Small numbers with few bits; with special values, a few that are none, infinite, a negative
  // zero, denormal or large, of which products and sums of a few hundred stay finite in f32.
  Numbers numbers(ScalarKind element, size_t count);
  // Any bits and every special value; small numbers without them.
  Numbers anything(ScalarKind element, size_t count);
  // Bytes of i8, with the outermost ones.
  Numbers bytes(size_t count);
  // Weights in GGUF's blocks of 32, with q4_0 for `nibbles` and else q8_0.
  Numbers blocks(size_t weights, bool nibbles);

 private:
  double number(ScalarKind element);

  std::mt19937_64 random_;
  bool with_specials_;
};

}  // namespace loom::lib
