#include "loom/dialect/numeric.h"

#include <bit>
#include <cmath>

#include "loom/base/check.h"

namespace loom {
namespace {

struct FloatFormat {
  int exponent_bits;
  int mantissa_bits;
  bool has_infinity;

  int bias() const { return (1 << (exponent_bits - 1)) - 1; }
  int width() const { return 1 + exponent_bits + mantissa_bits; }
  uint64_t exponent_mask() const { return ((uint64_t{1} << exponent_bits) - 1) << mantissa_bits; }
  // f8E4M3 has one NaN per sign, all ones; the values below it are finite.
  uint64_t infinity() const { return exponent_mask(); }
  uint64_t largest() const { return has_infinity ? exponent_mask() - 1 : 0x7e; }
  uint64_t nan() const {
    return has_infinity ? exponent_mask() | (uint64_t{1} << (mantissa_bits - 1)) : 0x7f;
  }
};

FloatFormat format_of(ScalarKind kind) {
  switch (kind) {
    case ScalarKind::F8E4M3:
      return {4, 3, false};
    case ScalarKind::F8E5M2:
      return {5, 2, true};
    case ScalarKind::F16:
      return {5, 10, true};
    case ScalarKind::BF16:
      return {8, 7, true};
    case ScalarKind::F32:
      return {8, 23, true};
    case ScalarKind::F64:
      return {11, 52, true};
    default:
      LOOM_CHECK(false, "not a float format");
      return {};
  }
}

uint64_t sign_bit(const FloatFormat& format, bool negative) {
  return negative ? uint64_t{1} << (format.width() - 1) : 0;
}

// An overflow gives infinity, or the largest finite value where there is none.
uint64_t overflow(const FloatFormat& format) {
  return format.has_infinity ? format.infinity() : format.largest();
}

// Rounds m * 2^exponent with bit 63 of m set.
uint64_t round_normalized(const FloatFormat& format, uint64_t m, int exponent, bool sticky) {
  const int top = exponent + 63;
  const int least = 1 - format.bias();
  if (top > format.bias() + 1) return overflow(format);
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
  return kept > format.largest() ? overflow(format) : kept;
}

}  // namespace

uint64_t scalar_mask(ScalarKind kind) {
  const unsigned bits = scalar_bits(kind);
  return bits == 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1;
}

ScalarValue from_bits(ScalarKind kind, uint64_t value) { return {kind, value & scalar_mask(kind)}; }

int64_t as_signed(ScalarValue value) {
  const unsigned unused = 64 - scalar_bits(value.kind);
  return static_cast<int64_t>(value.bits << unused) >> unused;
}

ScalarValue round_to(ScalarKind kind, bool negative, uint64_t magnitude, int exponent,
                     bool sticky) {
  const FloatFormat format = format_of(kind);
  uint64_t bits = 0;
  if (magnitude != 0) {
    const int shift = std::countl_zero(magnitude);
    bits = round_normalized(format, magnitude << shift, exponent - shift, sticky);
  }
  return {kind, bits | sign_bit(format, negative)};
}

ScalarValue quiet_nan(ScalarKind kind) { return {kind, format_of(kind).nan()}; }

bool is_nan(ScalarValue value) {
  if (!is_float(value.kind)) return false;
  const FloatFormat format = format_of(value.kind);
  const uint64_t magnitude = value.bits & (scalar_mask(value.kind) >> 1);
  return format.has_infinity ? magnitude > format.infinity() : magnitude == format.nan();
}

double to_double(ScalarValue value) {
  if (value.kind == ScalarKind::I1) return value.bits != 0 ? 1.0 : 0.0;
  if (!is_float(value.kind)) return static_cast<double>(as_signed(value));
  if (value.kind == ScalarKind::F64) return std::bit_cast<double>(value.bits);
  if (value.kind == ScalarKind::F32) {
    return std::bit_cast<float>(static_cast<uint32_t>(value.bits));
  }
  if (is_nan(value)) return std::bit_cast<double>(quiet_nan(ScalarKind::F64).bits);
  const FloatFormat format = format_of(value.kind);
  const bool negative = (value.bits >> (format.width() - 1)) != 0;
  const uint64_t magnitude = value.bits & (scalar_mask(value.kind) >> 1);
  double result = 0;
  if (format.has_infinity && magnitude == format.infinity()) {
    result = HUGE_VAL;
  } else {
    const auto exponent = static_cast<int>(magnitude >> format.mantissa_bits);
    uint64_t mantissa = magnitude & ((uint64_t{1} << format.mantissa_bits) - 1);
    if (exponent != 0) mantissa |= uint64_t{1} << format.mantissa_bits;
    const int power = (exponent == 0 ? 1 : exponent) - format.bias() - format.mantissa_bits;
    result = std::ldexp(static_cast<double>(mantissa), power);
  }
  return negative ? -result : result;
}

ScalarValue from_double(ScalarKind kind, double value) {
  if (std::isnan(value)) return quiet_nan(kind);
  const auto bits = std::bit_cast<uint64_t>(value);
  if (kind == ScalarKind::F64) return {kind, bits};
  const bool negative = (bits >> 63) != 0;
  const FloatFormat format = format_of(kind);
  if (std::isinf(value)) return {kind, overflow(format) | sign_bit(format, negative)};
  const auto exponent = static_cast<int>((bits >> 52) & 0x7ff);
  uint64_t mantissa = bits & ((uint64_t{1} << 52) - 1);
  if (exponent != 0) mantissa |= uint64_t{1} << 52;
  return round_to(kind, negative, mantissa, (exponent == 0 ? 1 : exponent) - 1023 - 52);
}

std::optional<ScalarValue> from_literal(const Attr& literal, ScalarKind kind) {
  if (is_float(kind)) {
    if (literal.kind != AttrKind::Float) return std::nullopt;
    const double number = literal.number();
    const ScalarValue value = from_double(kind, number);
    if (std::isnan(number)) {
      const FloatFormat format = format_of(kind);
      return ScalarValue{kind, value.bits | sign_bit(format, std::signbit(number))};
    }
    // An overflow shows as infinity, or as 448 for a number that does not round to 448.
    if (std::isinf(number)) {
      return std::isinf(to_double(value)) ? std::optional(value) : std::nullopt;
    }
    const double rounded = to_double(value);
    if (std::isinf(rounded)) return std::nullopt;
    if (kind == ScalarKind::F8E4M3 && std::fabs(number) > 464.0) return std::nullopt;
    return value;
  }
  if (literal.kind == AttrKind::Bool) {
    if (kind != ScalarKind::I1) return std::nullopt;
    return ScalarValue{kind, literal.bits};
  }
  if (literal.kind != AttrKind::Integer) return std::nullopt;
  const int64_t value = literal.value();
  if (kind == ScalarKind::Offset && value < 0) return std::nullopt;
  const unsigned bits = scalar_bits(kind);
  if (bits == 1 && (value < 0 || value > 1)) return std::nullopt;
  if (bits < 64) {
    const int64_t least = -(int64_t{1} << (bits - 1));
    if (value < least || value > static_cast<int64_t>(scalar_mask(kind))) return std::nullopt;
  }
  return from_bits(kind, static_cast<uint64_t>(value));
}

Attr to_literal(ScalarValue value) {
  if (value.kind == ScalarKind::I1) return Attr::boolean(value.bits != 0);
  if (!is_float(value.kind)) return Attr::integer(as_signed(value));
  const double number = to_double(value);
  if (is_nan(value)) {
    const bool negative = (value.bits >> (scalar_bits(value.kind) - 1)) != 0;
    return Attr::floating(std::copysign(number, negative ? -1.0 : 1.0));
  }
  return Attr::floating(number);
}

}  // namespace loom
