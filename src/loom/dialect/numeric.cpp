#include "loom/dialect/numeric.h"

#include <bit>
#include <cmath>

#include "loom/base/check.h"
#include "loom/base/float_format.h"

namespace loom {
namespace {

const FloatFormat& format_of(ScalarKind kind) {
  switch (kind) {
    case ScalarKind::F8E4M3:
      return kFormatF8E4M3;
    case ScalarKind::F8E5M2:
      return kFormatF8E5M2;
    case ScalarKind::F16:
      return kFormatF16;
    case ScalarKind::BF16:
      return kFormatBF16;
    case ScalarKind::F32:
      return kFormatF32;
    case ScalarKind::F64:
      return kFormatF64;
    default:
      LOOM_CHECK(false, "not a float format");
      return kFormatF64;
  }
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
  return {kind, round_to_format(format_of(kind), negative, magnitude, exponent, sticky)};
}

ScalarValue quiet_nan(ScalarKind kind) { return {kind, format_of(kind).nan()}; }

bool is_nan(ScalarValue value) {
  return is_float(value.kind) && format_of(value.kind).is_nan(value.bits);
}

double to_double(ScalarValue value) {
  if (value.kind == ScalarKind::I1) return value.bits != 0 ? 1.0 : 0.0;
  if (!is_float(value.kind)) return static_cast<double>(as_signed(value));
  if (value.kind == ScalarKind::F64) return std::bit_cast<double>(value.bits);
  if (value.kind == ScalarKind::F32) {
    return std::bit_cast<float>(static_cast<uint32_t>(value.bits));
  }
  if (is_nan(value)) return std::bit_cast<double>(quiet_nan(ScalarKind::F64).bits);
  return decode_float(format_of(value.kind), value.bits);
}

ScalarValue from_double(ScalarKind kind, double value) {
  if (std::isnan(value)) return quiet_nan(kind);
  return {kind, encode_float(format_of(kind), value)};
}

std::optional<ScalarValue> from_literal(const Attr& literal, ScalarKind kind) {
  if (is_float(kind)) {
    if (literal.kind != AttrKind::Float) return std::nullopt;
    const double number = literal.number();
    const ScalarValue value = from_double(kind, number);
    if (std::isnan(number)) {
      const uint64_t sign = std::signbit(number) ? format_of(kind).sign_bit() : 0;
      return ScalarValue{kind, value.bits | sign};
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
