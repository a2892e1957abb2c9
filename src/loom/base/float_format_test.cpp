#include "loom/base/float_format.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

namespace loom {
namespace {

TEST(FloatFormat, EveryEncodingSurvivesDoubleAndNanKeepsItsSign) {
  for (const FloatFormat& format : {kFormatF8E4M3, kFormatF8E5M2, kFormatF16, kFormatBF16}) {
    for (uint64_t bits = 0; bits < 2 * format.sign_bit(); ++bits) {
      const uint64_t expected =
          format.is_nan(bits) ? (bits & format.sign_bit()) | format.nan() : bits;
      ASSERT_EQ(encode_float(format, decode_float(format, bits)), expected) << bits;
    }
  }
}

TEST(FloatFormat, F32RoundsAsTheHostDoes) {
  for (const double value : {0.1, -1e-45, 7e-46, 1e300, 16777217.0, 3.4028235677973366e38}) {
    const auto host = std::bit_cast<uint32_t>(static_cast<float>(value));
    EXPECT_EQ(encode_float(kFormatF32, value), host) << value;
    EXPECT_EQ(decode_float(kFormatF32, host), static_cast<double>(static_cast<float>(value)));
  }
}

TEST(FloatFormat, OverflowGivesInfinityOrTheLargestValue) {
  const double infinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(encode_float(kFormatF16, 65520.0), kFormatF16.exponent_mask());
  EXPECT_EQ(encode_float(kFormatF8E4M3, -infinity), 0xfeu);
  EXPECT_EQ(decode_float(kFormatF8E4M3, 0x7e), 448.0);
}

TEST(FloatFormat, StickyDecidesATie) {
  // 2^11 + 1 halves of the last place of f16 at 2^11.
  EXPECT_EQ(decode_float(kFormatF16, round_to_format(kFormatF16, false, 4097, -1, false)), 2048.0);
  EXPECT_EQ(decode_float(kFormatF16, round_to_format(kFormatF16, false, 4098, -1, false)), 2048.0);
  EXPECT_EQ(decode_float(kFormatF16, round_to_format(kFormatF16, false, 4098, -1, true)), 2050.0);
}

}  // namespace
}  // namespace loom
