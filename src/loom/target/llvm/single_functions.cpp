#include "loom/target/llvm/single_functions.h"

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Intrinsics.h>

#include <array>
#include <cmath>
#include <limits>

#include "loom/target/llvm/single_coefficients.h"

namespace loom {

using enum OpKind;

namespace {

constexpr double kLn2 = 0x1.62e42fefa39efp-1;
constexpr double kLog2E = 0x1.71547652b82fep+0;
constexpr double kLog10E = 0x1.bcb7b1526e50ep-2;
constexpr double kLog10Of2 = 0x1.34413509f79ffp-2;
constexpr double kHalfPi = 0x1.921fb54442d18p+0;
constexpr double kSqrtHalf = 0x1.6a09e667f3bcdp-1;

// A float format as its bits. Adding `round` to a small number leaves the nearest integer in the
// low bits.
struct Format {
  unsigned mantissa;
  double round;
  uint64_t one;
};
constexpr Format kSingle = {23, 0x1.8p23, 0x3f800000};
constexpr Format kDouble = {52, 0x1.8p52, 0x3ff0000000000000};

}  // namespace

// --- words --------------------------------------------------------------------------------------

llvm::Type* SingleFunctions::shaped(llvm::Type* scalar, V like) const {
  const auto* const vector = llvm::dyn_cast<llvm::FixedVectorType>(like->getType());
  return vector == nullptr ? scalar : llvm::FixedVectorType::get(scalar, vector->getNumElements());
}

llvm::Value* SingleFunctions::widen(V x) { return b_.CreateFPExt(x, shaped(b_.getDoubleTy(), x)); }
llvm::Value* SingleFunctions::narrow(V x) {
  return b_.CreateFPTrunc(x, shaped(b_.getFloatTy(), x));
}

llvm::Value* SingleFunctions::bits(V x) {
  const unsigned width = x->getType()->getScalarSizeInBits();
  return b_.CreateBitCast(x, shaped(b_.getIntNTy(width), x));
}

llvm::Value* SingleFunctions::floats(V x, llvm::Type* scalar) {
  return b_.CreateBitCast(x, shaped(scalar, x));
}

llvm::Value* SingleFunctions::number(V like, double value) {
  return llvm::ConstantFP::get(like->getType(), value);
}

llvm::Value* SingleFunctions::word(V like, unsigned long long value) {
  return llvm::ConstantInt::get(like->getType(), value);
}

llvm::Value* SingleFunctions::mad(V a, V b, V c) {
  if (!fuses_) return b_.CreateFAdd(b_.CreateFMul(a, b), c);
  return b_.CreateIntrinsic(a->getType(), llvm::Intrinsic::fma, {a, b, c});
}

llvm::Value* SingleFunctions::horner(std::span<const double> terms, V x) {
  V sum = number(x, terms[0]);
  for (const double term : terms.subspan(1)) sum = mad(sum, x, number(x, term));
  return sum;
}

llvm::Value* SingleFunctions::absolute(V x) {
  return b_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, x);
}

llvm::Value* SingleFunctions::with_sign_of(V magnitude, V x) {
  return b_.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, magnitude, x);
}

// A NaN stays one.
llvm::Value* SingleFunctions::at_most(V x, double high) {
  return b_.CreateSelect(b_.CreateFCmpOGT(x, number(x, high)), number(x, high), x);
}

llvm::Value* SingleFunctions::clamped(V x, double low, double high) {
  return at_most(b_.CreateSelect(b_.CreateFCmpOLT(x, number(x, low)), number(x, low), x), high);
}

// --- exponentials -------------------------------------------------------------------------------

// Of |y| <= 1000 powers of two, in f64.
SingleFunctions::Power SingleFunctions::power(V y, bool of_two) {
  V const shifted = of_two ? b_.CreateFAdd(y, number(y, kDouble.round))
                           : mad(y, number(y, kLog2E), number(y, kDouble.round));
  V const count = b_.CreateFSub(shifted, number(y, kDouble.round));
  V const rest = of_two ? b_.CreateFMul(b_.CreateFSub(y, count), number(y, kLn2))
                        : mad(count, number(y, -kLn2), y);
  V const exponent = b_.CreateShl(bits(shifted), kDouble.mantissa);
  V const scale = floats(b_.CreateAdd(exponent, word(exponent, kDouble.one)), b_.getDoubleTy());
  return {scale, b_.CreateFMul(rest, horner(single::kExpm1, rest))};
}

llvm::Value* SingleFunctions::exp(V y) {
  const Power p = power(clamped(y, -700, 700));
  return mad(p.scale, p.rest, p.scale);
}

llvm::Value* SingleFunctions::expm1(V y) {
  const Power p = power(clamped(y, -700, 700));
  return mad(p.scale, p.rest, b_.CreateFSub(p.scale, number(y, 1)));
}

llvm::Value* SingleFunctions::exp_single(V x, bool of_two, bool approximate) {
  // From where on every result is 0 and infinity.
  const double unit = of_two ? 1 : kLog2E;
  x = clamped(x, (approximate ? -127 : -151) / unit, (approximate ? 128 : 128.5) / unit);
  V const magic = number(x, kSingle.round);
  V const shifted = of_two ? b_.CreateFAdd(x, magic) : mad(x, number(x, kLog2E), magic);
  V const count = b_.CreateFSub(shifted, magic);
  V rest = nullptr;
  if (of_two) {
    rest = b_.CreateFSub(x, count);
  } else {
    // The first product is exact.
    rest = mad(count, number(x, -0x1.62e4p-1), x);
    rest = mad(count, number(x, -0x1.7f7d1cf79abcap-20), rest);
  }
  V const sum = of_two ? horner(single::kExp2m1Single, rest) : horner(single::kExpm1Single, rest);
  V const near_one = mad(sum, rest, number(x, 1));
  V const raw = bits(shifted);
  const auto scale = [&](V exponent) {
    V const field = b_.CreateShl(exponent, kSingle.mantissa);
    return floats(b_.CreateAdd(field, word(field, kSingle.one)), b_.getFloatTy());
  };
  if (approximate) return b_.CreateFMul(near_one, scale(raw));
  // In two steps, neither of which leaves the exponents of f32.
  V const whole = b_.CreateSub(raw, bits(magic));
  V const half = b_.CreateAShr(whole, 1);
  V const first = b_.CreateFMul(near_one, scale(half));
  return b_.CreateFMul(first, scale(b_.CreateSub(whole, half)));
}

// factor / (1 + e^-argument) in f64, where `factor` is 1 or infinite only together with the
// argument. At an argument of -infinity that is factor times 0.
llvm::Value* SingleFunctions::logistic_times(V factor, V argument) {
  V const sum = b_.CreateFAdd(exp(b_.CreateFNeg(argument)), number(argument, 1));
  V const quotient = b_.CreateFDiv(factor, sum);
  V const none = number(argument, -std::numeric_limits<double>::infinity());
  V const infinite = b_.CreateFCmpOEQ(argument, none);
  return narrow(b_.CreateSelect(infinite, b_.CreateFMul(factor, number(factor, 0)), quotient));
}

llvm::Value* SingleFunctions::tanh(V x) {
  V const wide = widen(x);
  V const minus_one = expm1(b_.CreateFAdd(wide, wide));
  return with_sign_of(narrow(b_.CreateFDiv(minus_one, b_.CreateFAdd(minus_one, number(wide, 2)))),
                      x);
}

// erf(a) = 1 - e^-(a rate(a)), where nothing cancels; it is 1 beyond 4.
llvm::Value* SingleFunctions::erf(V x) {
  V const size = at_most(absolute(widen(x)), 4);
  V const rate = horner(single::kErf, size);
  V const beyond = expm1(b_.CreateFNeg(b_.CreateFMul(size, rate)));
  return with_sign_of(narrow(beyond), x);
}

llvm::Value* SingleFunctions::erfc_of_positive(V z) {
  V const power = exp(b_.CreateFNeg(b_.CreateFMul(z, z)));  // 0 for every z beyond
  z = at_most(z, 11);
  V const one_plus = mad(z, number(z, 2), number(z, 1));
  V const shifted = b_.CreateFAdd(z, number(z, 3));
  V const inverse = b_.CreateFDiv(number(z, 1), b_.CreateFMul(one_plus, shifted));
  V const place = b_.CreateFMul(b_.CreateFMul(b_.CreateFSub(z, number(z, 3)), one_plus), inverse);
  V const scale = b_.CreateFMul(shifted, inverse);
  return b_.CreateFMul(b_.CreateFMul(power, scale), horner(single::kErfc, place));
}

llvm::Value* SingleFunctions::erfc(V x) {
  V const wide = widen(x);
  V const tail = erfc_of_positive(absolute(wide));
  V const negative = b_.CreateFCmpOLT(wide, number(wide, 0));
  return narrow(b_.CreateSelect(negative, b_.CreateFSub(number(wide, 2), tail), tail));
}

// Of the approximations x / (1 + e^-argument), in the format of x.
llvm::Value* SingleFunctions::gelu_argument(const EvalAttrs& attrs, V x) {
  if (static_cast<GeluForm>(attrs.choice) == GeluForm::Logistic) {
    return b_.CreateFMul(x, number(x, attrs.scale));
  }
  constexpr double kTwice = 2 * 0.79788456080286535588;
  V const factor = mad(b_.CreateFMul(x, x), number(x, 0.044715 * kTwice), number(x, kTwice));
  return b_.CreateFMul(x, factor);
}

llvm::Value* SingleFunctions::gelu(const EvalAttrs& attrs, V x) {
  V const wide = widen(x);
  if (static_cast<GeluForm>(attrs.choice) != GeluForm::Erf) {
    return logistic_times(wide, gelu_argument(attrs, wide));
  }
  V const half = b_.CreateFMul(
      erfc_of_positive(b_.CreateFMul(absolute(wide), number(wide, kSqrtHalf))), number(wide, 0.5));
  V const negative = b_.CreateFCmpOLT(wide, number(wide, 0));
  V const share = b_.CreateSelect(negative, half, b_.CreateFSub(number(wide, 1), half));
  V const none = number(x, -std::numeric_limits<double>::infinity());
  V const value = narrow(b_.CreateFMul(wide, share));
  V const nan = llvm::ConstantFP::getNaN(x->getType());
  return b_.CreateSelect(b_.CreateFCmpOEQ(x, none), nan, value);
}

// --- the same in f32, for afn -------------------------------------------------------------------

llvm::Value* SingleFunctions::approximate(OpKind op, const EvalAttrs& attrs, V x) {
  V const one = number(x, 1);
  const auto over_one_plus_exp = [&](V factor, V argument) {
    V const power = exp_single(b_.CreateFNeg(argument), false, true);
    return b_.CreateFDiv(factor, b_.CreateFAdd(power, one));
  };
  const auto minus_one = [&](V y) { return b_.CreateFSub(exp_single(y, false, true), one); };
  switch (op) {
    case ScalarExpF:
    case ScalarExp2F:
      return exp_single(x, op == ScalarExp2F, true);
    case ScalarLogisticF:
      return over_one_plus_exp(one, x);
    case ScalarSiluF:
      return over_one_plus_exp(x, x);
    case ScalarTanhF: {
      // 1 - 2 / (e^2a + 1), which is 1 for large and within 2^-23 of 0 for small operands.
      V const size = absolute(x);
      V const power = exp_single(b_.CreateFAdd(size, size), false, true);
      V const part = b_.CreateFDiv(number(x, 2), b_.CreateFAdd(power, one));
      return with_sign_of(b_.CreateFSub(one, part), x);
    }
    case ScalarGeluF:
      break;
    default:
      return nullptr;
  }
  if (static_cast<GeluForm>(attrs.choice) != GeluForm::Erf) {
    return over_one_plus_exp(x, gelu_argument(attrs, x));
  }
  V const size = at_most(b_.CreateFMul(absolute(x), number(x, kSqrtHalf)), 4);
  V const rate = horner(single::kErfSingle, size);
  V const below = minus_one(b_.CreateFNeg(b_.CreateFMul(size, rate)));
  V const sum = b_.CreateFAdd(one, with_sign_of(below, x));
  return b_.CreateFMul(b_.CreateFMul(x, number(x, 0.5)), sum);
}

// --- logarithms ---------------------------------------------------------------------------------

// Of positive finite f64 numbers.
llvm::Value* SingleFunctions::log(V x, Base base, std::span<const double> terms) {
  constexpr uint64_t kSqrtHalfBits = 0x3fe6a09e667f3bcd;
  constexpr uint64_t kTwoTo52Bits = 0x4330000000000000;
  V const raw = bits(x);
  V const moved = b_.CreateAdd(raw, word(raw, kDouble.one - kSqrtHalfBits));
  V const exponent = b_.CreateOr(b_.CreateLShr(moved, kDouble.mantissa), kTwoTo52Bits);
  V const count = b_.CreateFSub(floats(exponent, b_.getDoubleTy()), number(x, 0x1p52 + 1023));
  V const fraction = b_.CreateAnd(moved, (uint64_t{1} << kDouble.mantissa) - 1);
  V const near_one = floats(b_.CreateAdd(fraction, word(raw, kSqrtHalfBits)), b_.getDoubleTy());
  V const rest = b_.CreateFSub(near_one, number(x, 1));
  V const small = b_.CreateFMul(rest, horner(terms, rest));
  switch (base) {
    case Base::E:
      return mad(count, number(x, kLn2), small);
    case Base::Two:
      return mad(small, number(x, kLog2E), count);
    case Base::Ten:
      break;
  }
  return mad(count, number(x, kLog10Of2), b_.CreateFMul(small, number(x, kLog10E)));
}

// `value` between the pole, where it is -infinity, and infinity; both in f32.
llvm::Value* SingleFunctions::checked_log(V x, double pole, V value) {
  V const infinity = llvm::ConstantFP::getInfinity(x->getType());
  V const above = b_.CreateFCmpOGT(x, number(x, pole));
  V const inside = b_.CreateAnd(above, b_.CreateFCmpOLT(x, infinity));
  V const at_pole = b_.CreateSelect(b_.CreateFCmpOEQ(x, number(x, pole)), b_.CreateFNeg(infinity),
                                    llvm::ConstantFP::getNaN(x->getType()));
  return b_.CreateSelect(inside, value, b_.CreateSelect(above, x, at_pole));
}

llvm::Value* SingleFunctions::log1p(V x) {
  V const wide = widen(x);
  V const sum = b_.CreateFAdd(wide, number(wide, 1));
  V const lost = b_.CreateFSub(wide, b_.CreateFSub(sum, number(wide, 1)));
  V const value = b_.CreateFAdd(log(sum, Base::E, single::kLog), b_.CreateFDiv(lost, sum));
  // A zero keeps its sign.
  return checked_log(x, -1, with_sign_of(narrow(value), x));
}

// max(x, 0) + log(1 + e^-|x|), with e^-|x| halved together with the 1 where that is nearer to 1.
llvm::Value* SingleFunctions::softplus(V x) {
  V const wide = widen(x);
  V const power = exp(b_.CreateFNeg(absolute(wide)));
  V const large = b_.CreateFCmpOGT(power, number(power, 0.4142135623730950488));
  V const halved = mad(power, number(power, 0.5), number(power, -0.5));
  V const rest = b_.CreateSelect(large, halved, power);
  V const extra = b_.CreateSelect(large, number(power, kLn2), number(power, 0));
  V const logarithm = mad(rest, horner(single::kLog, rest), extra);
  V const positive = b_.CreateFCmpOLT(wide, number(wide, 0));
  V const base = b_.CreateSelect(positive, number(wide, 0), wide);
  return narrow(b_.CreateFAdd(base, logarithm));
}

// --- angles -------------------------------------------------------------------------------------

// |x| times 2/pi, of which the part of 2/pi is chosen that matters for the exponent of x: its
// higher bits give whole turns only. The products of 24 and 29 bits are exact.
SingleFunctions::Angle SingleFunctions::reduced(V x) {
  V const size = absolute(widen(x));
  std::array<V, 4> beyond{};
  for (size_t block = 0; block < beyond.size(); ++block) {
    const double least = std::ldexp(1.0, 26 * static_cast<int>(block + 1));
    beyond[block] = b_.CreateFCmpOGE(size, number(size, least));
  }
  const auto product = [&](const std::array<double, 5>& parts) {
    V part = number(size, parts[0]);
    for (size_t block = 0; block < beyond.size(); ++block) {
      part = b_.CreateSelect(beyond[block], number(size, parts[block + 1]), part);
    }
    return b_.CreateFMul(size, part);
  };
  const auto without_turns = [&](V quarters) {
    V const magic = number(size, 0x1.8p54);  // rounds to multiples of 4
    return b_.CreateFSub(quarters, b_.CreateFSub(b_.CreateFAdd(quarters, magic), magic));
  };
  V const first = without_turns(product(single::kTwoOverPi0));
  V const second = without_turns(product(single::kTwoOverPi1));
  V const magic = number(size, kDouble.round);
  V const shifted = b_.CreateFAdd(b_.CreateFAdd(first, second), magic);
  V rest = b_.CreateFSub(first, b_.CreateFSub(shifted, magic));
  rest = b_.CreateFAdd(rest, second);
  rest = b_.CreateFAdd(rest, product(single::kTwoOverPi2));
  rest = b_.CreateFAdd(rest, product(single::kTwoOverPi3));
  return {bits(shifted), b_.CreateFMul(rest, number(size, kHalfPi))};
}

llvm::Value* SingleFunctions::sin_polynomial(V rest) {
  return b_.CreateFMul(rest, horner(single::kSin, b_.CreateFMul(rest, rest)));
}

llvm::Value* SingleFunctions::cos_polynomial(V rest) {
  return horner(single::kCos, b_.CreateFMul(rest, rest));
}

namespace {

llvm::Value* has_bit(llvm::IRBuilderBase& b, llvm::Value* words, uint64_t bit) {
  return b.CreateIsNotNull(b.CreateAnd(words, bit));
}

}  // namespace

llvm::Value* SingleFunctions::sine(V x) {
  const Angle angle = reduced(x);
  V const swapped = has_bit(b_, angle.count, 1);
  V const size = b_.CreateSelect(swapped, cos_polynomial(angle.rest), sin_polynomial(angle.rest));
  V const negative = b_.CreateShl(b_.CreateAnd(angle.count, 2), 62);
  V const value = narrow(floats(b_.CreateXor(bits(size), negative), b_.getDoubleTy()));
  V const sign = b_.CreateAnd(bits(x), 0x80000000);
  return floats(b_.CreateXor(bits(value), sign), b_.getFloatTy());
}

llvm::Value* SingleFunctions::cosine(V x) {
  const Angle angle = reduced(x);
  V const swapped = has_bit(b_, angle.count, 1);
  V const size = b_.CreateSelect(swapped, sin_polynomial(angle.rest), cos_polynomial(angle.rest));
  V const next = b_.CreateAdd(angle.count, word(angle.count, 1));
  V const negative = b_.CreateShl(b_.CreateAnd(next, 2), 62);
  return narrow(floats(b_.CreateXor(bits(size), negative), b_.getDoubleTy()));
}

llvm::Value* SingleFunctions::tangent(V x) {
  const Angle angle = reduced(x);
  V const swapped = has_bit(b_, angle.count, 1);
  V const s = sin_polynomial(angle.rest);
  V const c = cos_polynomial(angle.rest);
  V const quotient =
      b_.CreateFDiv(b_.CreateSelect(swapped, b_.CreateFNeg(c), s), b_.CreateSelect(swapped, s, c));
  V const sign = b_.CreateAnd(bits(x), 0x80000000);
  return floats(b_.CreateXor(bits(narrow(quotient)), sign), b_.getFloatTy());
}

llvm::Value* SingleFunctions::sin_of_turns(V turns) {
  V const wide = widen(turns);
  return narrow(sin_polynomial(b_.CreateFMul(wide, number(wide, 4 * kHalfPi))));
}

llvm::Value* SingleFunctions::cos_of_turns(V turns) {
  V const wide = widen(turns);
  return narrow(cos_polynomial(b_.CreateFMul(wide, number(wide, 4 * kHalfPi))));
}

// --- powers -------------------------------------------------------------------------------------

// 2^(y log2 |x|) with the sign of an odd power, then what IEEE 754 says of special operands.
llvm::Value* SingleFunctions::pow(V x, V y) {
  auto& b = b_;
  const double infinity = std::numeric_limits<double>::infinity();
  V const size = absolute(widen(x));
  V const exponent = widen(y);
  V const zero = number(size, 0);
  V const one = number(size, 1);
  V logarithm = log(size, Base::Two, single::kLogLong);
  logarithm = b.CreateSelect(b.CreateFCmpOEQ(size, zero), number(size, -infinity), logarithm);
  logarithm = b.CreateSelect(b.CreateFCmpOEQ(size, number(size, infinity)), size, logarithm);
  logarithm = b.CreateSelect(b.CreateFCmpUNO(size, size), size, logarithm);
  const Power p = power(clamped(b.CreateFMul(logarithm, exponent), -1000, 1000), true);
  V result = narrow(mad(p.scale, p.rest, p.scale));

  // Every number from 2^24 on is even.
  V const bounded = clamped(exponent, -0x1p24, 0x1p24);
  V const shifted = b.CreateFAdd(bounded, number(size, kDouble.round));
  V const nearest = b.CreateFSub(shifted, number(size, kDouble.round));
  V const whole = b.CreateFCmpOEQ(nearest, bounded);
  V const odd = b.CreateAnd(whole, has_bit(b, bits(shifted), 1));
  V const raw = bits(x);
  V const sign = b.CreateSelect(odd, b.CreateAnd(raw, 0x80000000), word(raw, 0));
  result = floats(b.CreateOr(bits(result), sign), b.getFloatTy());

  V const nan = llvm::ConstantFP::getNaN(x->getType());
  V const negative =
      b.CreateAnd(b.CreateFCmpOLT(x, number(x, 0)), b.CreateFCmpONE(x, number(x, -infinity)));
  V const no_power = b.CreateAnd(negative, b.CreateFCmpONE(nearest, bounded));
  result = b.CreateSelect(no_power, nan, result);
  V const is_unit = b.CreateFCmpOEQ(size, one);
  V const endless = b.CreateFCmpOEQ(absolute(exponent), number(size, infinity));
  V const always_one =
      b.CreateOr(b.CreateOr(b.CreateFCmpOEQ(exponent, zero), b.CreateFCmpOEQ(x, number(x, 1))),
                 b.CreateAnd(is_unit, endless));
  return b.CreateSelect(always_one, number(x, 1), result);
}

// --- the operations -----------------------------------------------------------------------------

llvm::Value* SingleFunctions::emit(OpKind op, const EvalAttrs& attrs,
                                   std::span<llvm::Value* const> operands) {
  V const x = operands[0];
  if (!x->getType()->getScalarType()->isFloatTy()) return nullptr;
  // What the source permits on the operation is no permission inside of it.
  llvm::IRBuilderBase::FastMathFlagGuard guard(b_);
  b_.clearFastMathFlags();
  if ((attrs.flags & kAfn) != 0) {
    if (V const value = approximate(op, attrs, x)) return value;
  }
  const auto whole = [&](Base base) {
    return checked_log(x, 0, narrow(log(widen(x), base, single::kLog)));
  };
  switch (op) {
    case ScalarExpF:
    case ScalarExp2F:
      return exp_single(x, op == ScalarExp2F, false);
    case ScalarExpm1F:
      return with_sign_of(narrow(expm1(widen(x))), x);
    case ScalarLogF:
      return whole(Base::E);
    case ScalarLog2F:
      return whole(Base::Two);
    case ScalarLog10F:
      return whole(Base::Ten);
    case ScalarLog1pF:
      return log1p(x);
    case ScalarTanhF:
      return tanh(x);
    case ScalarLogisticF: {
      V const wide = widen(x);
      return logistic_times(number(wide, 1), wide);
    }
    case ScalarSiluF: {
      V const wide = widen(x);
      return logistic_times(wide, wide);
    }
    case ScalarGeluF:
      return gelu(attrs, x);
    case ScalarSoftplusF:
      return softplus(x);
    case ScalarErfF:
      return erf(x);
    case ScalarErfcF:
      return erfc(x);
    case ScalarSinF:
      return sine(x);
    case ScalarCosF:
      return cosine(x);
    case ScalarTanF:
      return tangent(x);
    case ScalarAsinF:
      return asin(x);
    case ScalarAcosF:
      return acos(x);
    case ScalarAtanF:
      return atan(x);
    case ScalarAtan2F:
      return atan2(x, operands[1]);
    case ScalarCbrtF:
      return cbrt(x);
    case ScalarPowF:
      return pow(x, operands[1]);
    default:
      return nullptr;
  }
}

}  // namespace loom
