#include "loom/dialect/eval_test_util.h"

#include <cmath>
#include <numbers>
#include <random>

namespace loom {
namespace {

using enum OpKind;
using enum ScalarKind;

constexpr ScalarKind kNarrow[] = {F8E4M3, F8E5M2, F16, BF16};

// --- math functions, against the 64-bit significands of long double ------------------------------

ScalarValue rounded(ScalarKind kind, long double exact) {
  if (std::isnan(exact)) return quiet_nan(kind);
  if (!std::isfinite(exact) || exact == 0) return from_double(kind, static_cast<double>(exact));
  int exponent = 0;
  const long double fraction = std::frexp(std::fabs(exact), &exponent);
  const auto magnitude = static_cast<uint64_t>(std::ldexp(fraction, 64));
  return round_to(kind, std::signbit(exact), magnitude, exponent - 64);
}

void expect_value(OpKind op, const std::vector<ScalarValue>& operands, long double exact) {
  const ScalarKind kind = operands[0].kind;
  const ScalarValue found = value_of(op, operands, kind);
  const double first = to_double(operands[0]);
  if (std::isnan(exact)) {
    EXPECT_TRUE(is_nan(found)) << op_info(op).name << " " << first << " " << scalar_name(kind);
  } else {
    EXPECT_EQ(found, rounded(kind, exact))
        << op_info(op).name << " " << first << " " << to_double(operands.back()) << " "
        << scalar_name(kind);
  }
}

long double softplus(long double x) {
  // Above 60 the logarithm of 1 + e^x is x to more than 64 bits.
  return x > 60 ? x : std::log1p(std::exp(x));
}

TEST(EvalMath, FunctionsOfEveryNarrowFloatRoundTheExactValue) {
  struct Row {
    OpKind op;
    long double (*function)(long double);
  };
  const Row rows[] = {
      {ScalarExpm1F, [](long double x) { return std::expm1(x); }},
      {ScalarLog10F, [](long double x) { return std::log10(x); }},
      {ScalarLog1pF, [](long double x) { return std::log1p(x); }},
      {ScalarCbrtF, [](long double x) { return std::cbrt(x); }},
      {ScalarSoftplusF, softplus},
      {ScalarErfcF, [](long double x) { return std::erfc(x); }},
      {ScalarTanF, [](long double x) { return std::tan(x); }},
      {ScalarAsinF, [](long double x) { return std::asin(x); }},
      {ScalarAcosF, [](long double x) { return std::acos(x); }},
      {ScalarAtanF, [](long double x) { return std::atan(x); }},
  };
  for (const Row& row : rows) {
    for (const ScalarKind kind : kNarrow) {
      for (uint64_t bits = 0; bits <= scalar_mask(kind); ++bits) {
        const ScalarValue a{kind, bits};
        expect_value(row.op, {a}, row.function(to_double(a)));
      }
    }
  }
}

// The angle of (x, y) from the arc tangent of the quotient and the quadrant.
long double angle(long double y, long double x) {
  constexpr long double kPi = std::numbers::pi_v<long double>;
  if (x == 0) return std::copysign(kPi / 2, y);
  const long double part = std::atan(y / x);
  return x > 0 ? part : part + std::copysign(kPi, y);
}

TEST(EvalMath, AnglesOfPoints) {
  for (const ScalarKind kind : {F8E4M3, F8E5M2}) {
    for (uint64_t p = 0; p <= scalar_mask(kind); ++p) {
      for (uint64_t q = 0; q <= scalar_mask(kind); ++q) {
        const ScalarValue a{kind, p}, b{kind, q};
        const double y = to_double(a), x = to_double(b);
        if (!std::isfinite(x) || !std::isfinite(y) || (x == 0 && y == 0)) continue;
        expect_value(ScalarAtan2F, {a, b}, angle(y, x));
      }
    }
  }
  const auto of = [](double y, double x) {
    return to_double(value_of(ScalarAtan2F, {real(F64, y), real(F64, x)}, F64));
  };
  EXPECT_EQ(of(0.0, -1.0), std::numbers::pi);
  EXPECT_EQ(of(-0.0, -1.0), -std::numbers::pi);
  EXPECT_EQ(of(HUGE_VAL, HUGE_VAL), std::numbers::pi / 4);
  EXPECT_TRUE(std::signbit(of(-0.0, 0.0)));
}

TEST(EvalMath, RemaindersAreThoseOfIntegers) {
  std::mt19937_64 random(29);
  for (const ScalarKind kind : {F8E4M3, F8E5M2, F16}) {
    for (int i = 0; i < 100000; ++i) {
      const ScalarValue a{kind, random() & scalar_mask(kind)};
      const ScalarValue b{kind, random() & scalar_mask(kind)};
      const double x = to_double(a), y = to_double(b);
      const ScalarValue found = value_of(ScalarRemF, {a, b}, kind);
      if (!std::isfinite(x) || std::isnan(y) || y == 0) {
        EXPECT_TRUE(is_nan(found)) << x << " " << y;
        continue;
      }
      if (std::isinf(y)) {
        EXPECT_EQ(found, a);
        continue;
      }
      // Every finite value of these formats is a multiple of 2^-24.
      const auto whole_x = static_cast<int64_t>(std::ldexp(x, 24));
      const auto whole_y = static_cast<int64_t>(std::ldexp(y, 24));
      EXPECT_EQ(std::ldexp(to_double(found), 24), static_cast<double>(whole_x % whole_y));
      EXPECT_EQ(std::signbit(to_double(found)), std::signbit(x));
    }
  }
}

TEST(EvalMath, IntegerMultiplyAddIsModular) {
  for (int x = -128; x < 128; x += 3) {
    for (int y = -128; y < 128; y += 5) {
      for (int z = -128; z < 128; z += 7) {
        const ScalarValue a = whole(I8, x), b = whole(I8, y), c = whole(I8, z);
        const int exact = x * y + z;
        EXPECT_EQ(value_of(ScalarFmaI, {a, b, c}, I8), whole(I8, exact));
        const bool fits = exact >= -128 && exact < 128;
        const Outcome flagged = eval(ScalarFmaI, {a, b, c}, I8, {.flags = kNsw});
        EXPECT_EQ(flagged.status == EvalStatus::Ok, fits) << x << " " << y << " " << z;
      }
    }
  }
}

}  // namespace
}  // namespace loom
