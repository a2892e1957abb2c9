#include "loom/dialect/eval_float.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace loom::detail {
namespace {

using enum OpKind;

// Formats up to 16 bits have at most 11 mantissa bits, so one operation in double followed by one
// rounding gives the correctly rounded result for + - * / and sqrt (53 >= 2 * 11 + 2).
template <class F>
ScalarValue rounded(ScalarKind kind, F&& compute, ScalarValue a, ScalarValue b) {
  if (kind == ScalarKind::F32) {
    return from_double(kind,
                       compute(static_cast<float>(to_double(a)), static_cast<float>(to_double(b))));
  }
  return from_double(kind, compute(to_double(a), to_double(b)));
}

// a * b + c for narrow formats. The product is exact in double; the sum is rounded to odd, which a
// second rounding to fewer bits cannot distort.
double fma_to_odd(double a, double b, double c) {
  const double product = a * b;
  const double sum = product + c;
  if (!std::isfinite(sum)) return sum;
  const double c_part = sum - product;
  const double error = (product - (sum - c_part)) + (c - c_part);
  if (error == 0 || (std::bit_cast<uint64_t>(sum) & 1) != 0) return sum;
  return std::nextafter(sum, error > 0 ? HUGE_VAL : -HUGE_VAL);
}

ScalarValue fused(ScalarKind kind, ScalarValue a, ScalarValue b, ScalarValue c) {
  const double x = to_double(a);
  const double y = to_double(b);
  const double z = to_double(c);
  if (kind == ScalarKind::F64) return from_double(kind, std::fma(x, y, z));
  if (kind == ScalarKind::F32) {
    return from_double(
        kind, std::fma(static_cast<float>(x), static_cast<float>(y), static_cast<float>(z)));
  }
  return from_double(kind, fma_to_odd(x, y, z));
}

// -0 counts as less than +0.
bool below(double a, double b) {
  if (a == b) return std::signbit(a) && !std::signbit(b);
  return a < b;
}

ScalarValue extreme(OpKind op, ScalarKind kind, ScalarValue a, ScalarValue b) {
  const bool number_wins = op == ScalarMinNumF || op == ScalarMaxNumF;
  const bool least = op == ScalarMinimumF || op == ScalarMinNumF;
  if (is_nan(a) || is_nan(b)) {
    if (!number_wins || (is_nan(a) && is_nan(b))) return quiet_nan(kind);
    return is_nan(a) ? b : a;
  }
  return below(to_double(a), to_double(b)) == least ? a : b;
}

bool compare(CmpFPredicate predicate, double a, double b) {
  using enum CmpFPredicate;
  const bool unordered = std::isnan(a) || std::isnan(b);
  switch (predicate) {
    case Oeq:
      return a == b;
    case Ogt:
      return a > b;
    case Oge:
      return a >= b;
    case Olt:
      return a < b;
    case Ole:
      return a <= b;
    case One:
      return !unordered && a != b;
    case Ord:
      return !unordered;
    case Ueq:
      return unordered || a == b;
    case Ugt:
      return unordered || a > b;
    case Uge:
      return unordered || a >= b;
    case Ult:
      return unordered || a < b;
    case Ule:
      return unordered || a <= b;
    case Une:
      return a != b;
    case Uno:
      return unordered;
  }
  return false;
}

// Toward zero, saturating; NaN gives 0.
ScalarValue to_integer(ScalarKind kind, double value, bool is_signed) {
  const auto bits = static_cast<int>(scalar_bits(kind));
  if (std::isnan(value)) return {kind, 0};
  const double whole = std::trunc(value);
  const double limit = std::ldexp(1.0, is_signed ? bits - 1 : bits);  // first value too large
  if (is_signed) {
    if (whole >= limit) return {kind, scalar_mask(kind) >> 1};
    if (whole <= -limit) return from_bits(kind, uint64_t{1} << (bits - 1));
    return from_bits(kind, static_cast<uint64_t>(static_cast<int64_t>(whole)));
  }
  if (whole >= limit) return {kind, scalar_mask(kind)};
  if (whole <= 0) return {kind, 0};
  return {kind, static_cast<uint64_t>(whole)};
}

double logistic(double x) { return 1.0 / (1.0 + std::exp(-x)); }

// Written so that no leading digits cancel: 1 + erf(x) = erfc(-x) and (1 + tanh(x)) / 2 =
// logistic(2x).
double gelu(const EvalAttrs& attrs, double x) {
  constexpr double kSqrtHalf = 0.70710678118654752440;
  constexpr double kSqrtTwoOverPi = 0.79788456080286535588;
  switch (static_cast<GeluForm>(attrs.choice)) {
    case GeluForm::Erf:
      return 0.5 * x * std::erfc(-x * kSqrtHalf);
    case GeluForm::Tanh:
      return x * logistic(2.0 * kSqrtTwoOverPi * x * (1.0 + 0.044715 * x * x));
    case GeluForm::Logistic:
      return x * logistic(attrs.scale * x);
  }
  return std::numeric_limits<double>::quiet_NaN();
}

double round_even(double x) {
  const double down = std::floor(x);
  const double rest = x - down;
  if (rest != 0.5) return std::round(x);
  const double even = std::fmod(down, 2.0) == 0 ? down : down + 1.0;
  return std::copysign(even, x);
}

// Sine and cosine of an angle in [0, 1/4] turns, scaled only below an eighth, so that neither loses
// digits near its zero.
double sin_quarter(double turns) {
  constexpr double kTwoPi = 6.28318530717958647693;
  return turns > 0.125 ? std::cos(kTwoPi * (0.25 - turns)) : std::sin(kTwoPi * turns);
}
double cos_quarter(double turns) { return sin_quarter(0.25 - turns); }

// The angle in turns, reduced exactly to [-1/2, 1/2].
double part_of_turn(double x) { return std::remainder(x, 1.0); }

// A whole or half turn gives a zero with the sign of x.
double sin_turns(double x) {
  if (!std::isfinite(x)) return std::numeric_limits<double>::quiet_NaN();
  const double part = part_of_turn(x);
  const double size = std::fabs(part);
  const double sine = sin_quarter(size > 0.25 ? 0.5 - size : size);
  return std::copysign(sine, sine == 0 ? x : part);
}

double cos_turns(double x) {
  if (!std::isfinite(x)) return std::numeric_limits<double>::quiet_NaN();
  const double size = std::fabs(part_of_turn(x));
  return size > 0.25 ? 0.0 - cos_quarter(0.5 - size) : cos_quarter(size);
}

// log(1 + e^x) without overflow for large and without loss for small x.
double softplus(double x) {
  return std::isnan(x) ? x : std::max(x, 0.0) + std::log1p(std::exp(-std::fabs(x)));
}

// Functions of one float of the second tier; false for any other operation.
bool apply_further(OpKind op, double x, double& y) {
  switch (op) {
    case ScalarExpm1F:
      return y = std::expm1(x), true;
    case ScalarLog10F:
      return y = std::log10(x), true;
    case ScalarLog1pF:
      return y = std::log1p(x), true;
    case ScalarCbrtF:
      return y = std::cbrt(x), true;
    case ScalarSoftplusF:
      return y = softplus(x), true;
    case ScalarErfcF:
      return y = std::erfc(x), true;
    case ScalarSinTurnsF:
      return y = sin_turns(x), true;
    case ScalarCosTurnsF:
      return y = cos_turns(x), true;
    case ScalarTanF:
      return y = std::tan(x), true;
    case ScalarAsinF:
      return y = std::asin(x), true;
    case ScalarAcosF:
      return y = std::acos(x), true;
    case ScalarAtanF:
      return y = std::atan(x), true;
    default:
      return false;
  }
}

ScalarValue clamp(ClampMode mode, ScalarValue v, ScalarValue low, ScalarValue high) {
  const ScalarKind kind = v.kind;
  switch (mode) {
    case ClampMode::Ordered:
      if (to_double(v) < to_double(low)) v = low;
      return to_double(v) > to_double(high) ? high : v;
    case ClampMode::Number:
      return extreme(ScalarMinNumF, kind, extreme(ScalarMaxNumF, kind, v, low), high);
    case ClampMode::Ieee:
      return extreme(ScalarMinimumF, kind, extreme(ScalarMaximumF, kind, v, low), high);
  }
  return v;
}

// Functions of one float; false for any other operation.
bool apply(OpKind op, const EvalAttrs& attrs, double x, double& y) {
  switch (op) {
    case ScalarExpF:
      return y = std::exp(x), true;
    case ScalarExp2F:
      return y = std::exp2(x), true;
    case ScalarLogF:
      return y = std::log(x), true;
    case ScalarLog2F:
      return y = std::log2(x), true;
    case ScalarSqrtF:
      return y = std::sqrt(x), true;
    case ScalarRsqrtF:
      return y = 1.0 / std::sqrt(x), true;
    case ScalarSinF:
      return y = std::sin(x), true;
    case ScalarCosF:
      return y = std::cos(x), true;
    case ScalarTanhF:
      return y = std::tanh(x), true;
    case ScalarErfF:
      return y = std::erf(x), true;
    case ScalarLogisticF:
      return y = logistic(x), true;
    case ScalarSiluF:
      return y = x * logistic(x), true;
    case ScalarGeluF:
      return y = gelu(attrs, x), true;
    case ScalarCeilF:
      return y = std::ceil(x), true;
    case ScalarFloorF:
      return y = std::floor(x), true;
    case ScalarTruncF:
      return y = std::trunc(x), true;
    case ScalarRoundF:
      return y = std::round(x), true;
    case ScalarRoundEvenF:
      return y = round_even(x), true;
    default:
      return apply_further(op, x, y);
  }
}

EvalStatus evaluate_binary(OpKind op, ScalarKind kind, ScalarValue a, ScalarValue b,
                           ScalarValue& result) {
  switch (op) {
    case ScalarAddF:
      result = rounded(kind, [](auto x, auto y) { return x + y; }, a, b);
      return EvalStatus::Ok;
    case ScalarSubF:
      result = rounded(kind, [](auto x, auto y) { return x - y; }, a, b);
      return EvalStatus::Ok;
    case ScalarMulF:
      result = rounded(kind, [](auto x, auto y) { return x * y; }, a, b);
      return EvalStatus::Ok;
    case ScalarDivF:
      result = rounded(kind, [](auto x, auto y) { return x / y; }, a, b);
      return EvalStatus::Ok;
    case ScalarPowF:
      result = from_double(kind, std::pow(to_double(a), to_double(b)));
      return EvalStatus::Ok;
    case ScalarRemF:
      result = from_double(kind, std::fmod(to_double(a), to_double(b)));
      return EvalStatus::Ok;
    case ScalarAtan2F:
      result = from_double(kind, std::atan2(to_double(a), to_double(b)));
      return EvalStatus::Ok;
    case ScalarMinimumF:
    case ScalarMaximumF:
    case ScalarMinNumF:
    case ScalarMaxNumF:
      result = extreme(op, kind, a, b);
      return EvalStatus::Ok;
    default:
      return EvalStatus::NotEvaluable;
  }
}

}  // namespace

EvalStatus evaluate_float(OpKind op, const EvalAttrs& attrs, std::span<const ScalarValue> operands,
                          ScalarKind result_kind, ScalarValue& result) {
  const ScalarValue a = operands[0];
  const uint64_t sign = (scalar_mask(a.kind) >> 1) + 1;
  switch (op) {
    case ScalarNegF:
      result = {a.kind, a.bits ^ sign};
      return EvalStatus::Ok;
    case ScalarAbsF:
      result = {a.kind, a.bits & ~sign};
      return EvalStatus::Ok;
    case ScalarExtF:
    case ScalarFPTrunc:
      result = from_double(result_kind, to_double(a));
      return EvalStatus::Ok;
    case ScalarFPToSI:
    case ScalarFPToUI:
      result = to_integer(result_kind, to_double(a), op == ScalarFPToSI);
      return EvalStatus::Ok;
    case ScalarCmpF:
      result = {ScalarKind::I1, compare(static_cast<CmpFPredicate>(attrs.choice), to_double(a),
                                        to_double(operands[1]))};
      return EvalStatus::Ok;
    case ScalarCopysignF:
      result = {a.kind, (a.bits & ~sign) | (operands[1].bits & sign)};
      return EvalStatus::Ok;
    case ScalarSignF: {
      const double x = to_double(a);
      result = x == 0 || std::isnan(x) ? a : from_double(a.kind, x < 0 ? -1.0 : 1.0);
      return EvalStatus::Ok;
    }
    case ScalarIsNanF:
      result = {ScalarKind::I1, is_nan(a)};
      return EvalStatus::Ok;
    case ScalarIsInfF:
      result = {ScalarKind::I1, std::isinf(to_double(a))};
      return EvalStatus::Ok;
    case ScalarIsFiniteF:
      result = {ScalarKind::I1, std::isfinite(to_double(a))};
      return EvalStatus::Ok;
    case ScalarClampF:
      result = clamp(static_cast<ClampMode>(attrs.choice), a, operands[1], operands[2]);
      return EvalStatus::Ok;
    case ScalarFmaF:
      result = fused(result_kind, a, operands[1], operands[2]);
      return EvalStatus::Ok;
    default:
      break;
  }
  if (operands.size() == 2) {
    return evaluate_binary(op, result_kind, a, operands[1], result);
  }
  double y = 0;
  if (!apply(op, attrs, to_double(a), y)) return EvalStatus::NotEvaluable;
  result = from_double(result_kind, y);
  return EvalStatus::Ok;
}

}  // namespace loom::detail
