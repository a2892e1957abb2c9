// Binary floating-point formats of at most 64 bits, and exact conversion to and from double.
//
// Pure functions without state; safe from any thread.
#pragma once

#include <cstdint>

namespace loom {

// Sign, exponent and mantissa from the top bit down, as in IEEE 754. A format without infinity has
// one NaN per sign, all ones; the values below it are finite.
struct FloatFormat {
  int exponent_bits;
  int mantissa_bits;
  bool has_infinity;

  constexpr int bias() const { return (1 << (exponent_bits - 1)) - 1; }
  constexpr int magnitude_bits() const { return exponent_bits + mantissa_bits; }
  constexpr uint64_t magnitude_mask() const { return (uint64_t{1} << magnitude_bits()) - 1; }
  constexpr uint64_t exponent_mask() const {
    return magnitude_mask() & ~((uint64_t{1} << mantissa_bits) - 1);
  }
  constexpr uint64_t sign_bit() const { return uint64_t{1} << magnitude_bits(); }
  // The quiet NaN without a sign.
  constexpr uint64_t nan() const {
    return has_infinity ? exponent_mask() | (uint64_t{1} << (mantissa_bits - 1)) : magnitude_mask();
  }
  constexpr uint64_t largest() const {
    return has_infinity ? exponent_mask() - 1 : magnitude_mask() - 1;
  }
  // What an overflow gives: infinity, or the largest finite value where there is none.
  constexpr uint64_t overflow() const { return has_infinity ? exponent_mask() : largest(); }
  constexpr bool is_nan(uint64_t bits) const {
    const uint64_t magnitude = bits & magnitude_mask();
    return has_infinity ? magnitude > exponent_mask() : magnitude == nan();
  }
};

inline constexpr FloatFormat kFormatF8E4M3{4, 3, false};
inline constexpr FloatFormat kFormatF8E5M2{5, 2, true};
inline constexpr FloatFormat kFormatF16{5, 10, true};
inline constexpr FloatFormat kFormatBF16{8, 7, true};
inline constexpr FloatFormat kFormatF32{8, 23, true};
inline constexpr FloatFormat kFormatF64{11, 52, true};

// Rounds (-1)^negative * magnitude * 2^exponent, plus a non-zero remainder below the last bit when
// `sticky`, once: to nearest, ties to even.
uint64_t round_to_format(const FloatFormat& format, bool negative, uint64_t magnitude, int exponent,
                         bool sticky);
// Rounds once, to nearest, ties to even. A NaN becomes the quiet NaN of its sign.
uint64_t encode_float(const FloatFormat& format, double value);
// The value of the low bits, exactly. A NaN becomes the quiet NaN of its sign.
double decode_float(const FloatFormat& format, uint64_t bits);

}  // namespace loom
