#include "loom/base/float_format.h"

#include <bit>
#include <cmath>
#include <limits>

namespace loom {
namespace {

// Rounds m * 2^exponent with bit 63 of m set.
uint64_t round_normalized(const FloatFormat& format, uint64_t m, int exponent, bool sticky) {
  const int top = exponent + 63;
  const int least = 1 - format.bias();
  if (top > format.bias() + 1) return format.overflow();
  const int lost_to_denormal = top < least ? least - top : 0;
  const int shift = 63 - format.mantissa_bits + lost_to_denormal;
  if (shift > 64) return 0;  // below half of the least denormal
  uint64_t kept = shift == 64 ? 0 : m >> shift;
  const uint64_t half = uint64_t{1} << (shift - 1);
  const uint64_t rest = shift == 64 ? m : m & (2 * half - 1);
  if (rest > half || (rest == half && (sticky || (kept & 1) != 0))) ++kept;
  if (lost_to_denormal == 0) {
    // A carry out of the mantissa moves into the exponent by itself.
    kept += (static_cast<uint64_t>(top + format.bias()) - 1) << format.mantissa_bits;
  }
  return kept > format.largest() ? format.overflow() : kept;
}

}  // namespace

uint64_t round_to_format(const FloatFormat& format, bool negative, uint64_t magnitude, int exponent,
                         bool sticky) {
  const uint64_t sign = negative ? format.sign_bit() : 0;
  if (magnitude == 0) return sign;
  const int shift = std::countl_zero(magnitude);
  return sign | round_normalized(format, magnitude << shift, exponent - shift, sticky);
}

uint64_t encode_float(const FloatFormat& format, double value) {
  const uint64_t sign = std::signbit(value) ? format.sign_bit() : 0;
  if (std::isnan(value)) return sign | format.nan();
  if (std::isinf(value)) return sign | format.overflow();
  const auto bits = std::bit_cast<uint64_t>(value);
  const auto exponent = static_cast<int>((bits >> 52) & 0x7ff);
  uint64_t mantissa = bits & ((uint64_t{1} << 52) - 1);
  if (exponent != 0) mantissa |= uint64_t{1} << 52;
  return round_to_format(format, sign != 0, mantissa, (exponent == 0 ? 1 : exponent) - 1023 - 52,
                         false);
}

double decode_float(const FloatFormat& format, uint64_t bits) {
  const double sign = (bits & format.sign_bit()) != 0 ? -1.0 : 1.0;
  const uint64_t magnitude = bits & format.magnitude_mask();
  if (format.is_nan(bits)) return std::copysign(std::numeric_limits<double>::quiet_NaN(), sign);
  if (format.has_infinity && magnitude == format.exponent_mask()) {
    return sign * std::numeric_limits<double>::infinity();
  }
  const auto exponent = static_cast<int>(magnitude >> format.mantissa_bits);
  uint64_t mantissa = magnitude & ((uint64_t{1} << format.mantissa_bits) - 1);
  if (exponent != 0) mantissa |= uint64_t{1} << format.mantissa_bits;
  const int power = (exponent == 0 ? 1 : exponent) - format.bias() - format.mantissa_bits;
  return sign * std::ldexp(static_cast<double>(mantissa), power);
}

}  // namespace loom
