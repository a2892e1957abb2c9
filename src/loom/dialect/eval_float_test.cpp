#include "loom/dialect/eval_test_util.h"

#include <bit>
#include <cmath>
#include <random>

namespace loom {
namespace {

using enum OpKind;
using enum ScalarKind;

constexpr ScalarKind kNarrow[] = {F8E4M3, F8E5M2, F16, BF16};

// --- floats -------------------------------------------------------------------------------------

// Every pair of f8 values, every f16 and bf16 value against a sample. The second method works in
// long double, whose 64 bits hold every sum and product of these formats' significands, and rounds
// through double only where that is exact.
void check_arithmetic(ScalarKind kind, ScalarValue a, ScalarValue b) {
  const long double x = to_double(a);
  const long double y = to_double(b);
  const auto expect = [&](OpKind op, long double exact) {
    const ScalarValue found = value_of(op, {a, b}, kind);
    if (std::isnan(exact)) {
      EXPECT_TRUE(is_nan(found));
      return;
    }
    int exponent = 0;
    const long double fraction = std::frexp(std::fabs(exact), &exponent);
    ScalarValue expected = from_double(kind, static_cast<double>(exact));
    if (std::isfinite(exact) && exact != 0) {
      const auto magnitude = static_cast<uint64_t>(std::ldexp(fraction, 64));
      expected = round_to(kind, std::signbit(exact), magnitude, exponent - 64);
    }
    EXPECT_EQ(found, expected) << op_info(op).name << " " << static_cast<double>(x) << " "
                               << static_cast<double>(y) << " " << scalar_name(kind);
  };
  expect(ScalarAddF, x + y);
  expect(ScalarSubF, x - y);
  expect(ScalarMulF, x * y);
  expect(ScalarDivF, x / y);
}

TEST(Eval, NarrowFloatArithmeticRoundsOnce) {
  std::mt19937_64 random(13);
  for (const ScalarKind kind : kNarrow) {
    const uint64_t mask = scalar_mask(kind);
    const uint64_t step = scalar_bits(kind) == 8 ? 1 : 7;
    for (uint64_t x = 0; x <= mask; x += step) {
      if (scalar_bits(kind) == 8) {
        for (uint64_t y = 0; y <= mask; ++y) check_arithmetic(kind, {kind, x}, {kind, y});
      } else {
        for (int i = 0; i < 8; ++i) check_arithmetic(kind, {kind, x}, {kind, random() & mask});
      }
    }
  }
}

// a * b + c of narrow floats as one integer times a power of two: exact, then rounded once.
ScalarValue exact_fma(ScalarKind kind, double a, double b, double c) {
  int pa = 0, pb = 0, pc = 0;
  const auto split = [](double x, int& power) {
    const double fraction = std::frexp(x, &power);
    power -= 12;
    return static_cast<Int128>(std::ldexp(fraction, 12));
  };
  Int128 product = split(a, pa) * split(b, pb);
  Int128 addend = split(c, pc);
  int power = pa + pb;
  bool sticky = false;
  // Bring both to one power. A term more than 90 bits below the other only decides roundings.
  if (addend != 0 && product != 0) {
    const int gap = pc - power;
    if (gap > 90 || gap < -90) {
      Int128& large = gap > 0 ? addend : product;
      Int128& small = gap > 0 ? product : addend;
      power = gap > 0 ? pc : power;
      large <<= 40;
      power -= 40;
      // One unit below a far larger number: the exact value lies just inside it.
      if ((small < 0) != (large < 0)) large += large > 0 ? -1 : 1;
      small = 0;
      sticky = true;
    } else if (gap > 0) {
      addend <<= gap;
    } else {
      product <<= -gap;
      power = pc;
    }
  } else if (product == 0) {
    power = pc;
  }
  const Int128 sum = product + addend;
  Int128 magnitude = sum < 0 ? -sum : sum;
  while (magnitude >> 63 != 0) {
    sticky |= (magnitude & 1) != 0;
    magnitude >>= 1;
    ++power;
  }
  return round_to(kind, sum < 0, static_cast<uint64_t>(magnitude), power, sticky);
}

TEST(Eval, NarrowFusedMultiplyAddRoundsOnce) {
  std::mt19937_64 random(17);
  for (const ScalarKind kind : kNarrow) {
    const uint64_t mask = scalar_mask(kind);
    for (int i = 0; i < 300000; ++i) {
      const ScalarValue a{kind, random() & mask};
      const ScalarValue b{kind, random() & mask};
      const ScalarValue c{kind, random() & mask};
      const double x = to_double(a), y = to_double(b), z = to_double(c);
      if (!std::isfinite(x) || !std::isfinite(y) || !std::isfinite(z)) continue;
      const ScalarValue found = value_of(ScalarFmaF, {a, b, c}, kind);
      if (to_double(found) == 0) continue;  // the sign of an exact zero is the sum's own rule
      EXPECT_EQ(found, exact_fma(kind, x, y, z))
          << scalar_name(kind) << " " << x << " " << y << " " << z;
    }
  }
  // 1.5 * 1.0078125 is a tie of bf16; only an addend far below double's reach decides it.
  const ScalarValue below = real(BF16, -std::ldexp(1.0, -100));
  EXPECT_EQ(value_of(ScalarFmaF, {real(BF16, 1.5), real(BF16, 1.0078125), below}, BF16),
            real(BF16, 1.5078125));
}

TEST(Eval, FusedMultiplyAddOfF32IsTheMachines) {
  std::mt19937_64 random(19);
  for (int i = 0; i < 100000; ++i) {
    float v[3];
    for (float& f : v) f = std::bit_cast<float>(static_cast<uint32_t>(random()));
    const float expected = std::fma(v[0], v[1], v[2]);
    if (std::isnan(expected)) continue;
    EXPECT_EQ(value_of(ScalarFmaF, {real(F32, v[0]), real(F32, v[1]), real(F32, v[2])}, F32),
              real(F32, expected));
  }
}

TEST(Eval, MinimumAndMaximumOrderZerosAndNaN) {
  for (const ScalarKind kind : {F8E4M3, F8E5M2, F16, BF16, F32, F64}) {
    const ScalarValue plus = real(kind, 0.0), minus = real(kind, -0.0), one = real(kind, 1.0);
    const ScalarValue nan = quiet_nan(kind);
    for (const OpKind op : {ScalarMinimumF, ScalarMinNumF}) {
      EXPECT_EQ(value_of(op, {plus, minus}, kind), minus);
      EXPECT_EQ(value_of(op, {minus, plus}, kind), minus);
      EXPECT_EQ(value_of(op, {one, plus}, kind), plus);
    }
    for (const OpKind op : {ScalarMaximumF, ScalarMaxNumF}) {
      EXPECT_EQ(value_of(op, {plus, minus}, kind), plus);
      EXPECT_EQ(value_of(op, {minus, plus}, kind), plus);
      EXPECT_EQ(value_of(op, {one, plus}, kind), one);
    }
    for (const OpKind op : {ScalarMinimumF, ScalarMaximumF}) {
      EXPECT_TRUE(is_nan(value_of(op, {nan, one}, kind)));
      EXPECT_TRUE(is_nan(value_of(op, {one, nan}, kind)));
    }
    for (const OpKind op : {ScalarMinNumF, ScalarMaxNumF}) {
      EXPECT_EQ(value_of(op, {nan, one}, kind), one);
      EXPECT_EQ(value_of(op, {one, nan}, kind), one);
      EXPECT_TRUE(is_nan(value_of(op, {nan, nan}, kind)));
    }
  }
}

TEST(Eval, FloatComparisonsSplitOnNaN) {
  const auto compare = [](std::string_view word, double a, double b) {
    const uint64_t choice = *enum_info(EnumId::CmpFPredicate).find(word);
    return value_of(ScalarCmpF, {real(F32, a), real(F32, b)}, I1, {.choice = choice}).bits != 0;
  };
  const double nan = std::nan("");
  struct Row {
    std::string_view word;
    bool less, equal, greater, unordered;
  };
  constexpr Row kRows[] = {
      {"oeq", false, true, false, false}, {"ogt", false, false, true, false},
      {"oge", false, true, true, false},  {"olt", true, false, false, false},
      {"ole", true, true, false, false},  {"one", true, false, true, false},
      {"ord", true, true, true, false},   {"ueq", false, true, false, true},
      {"ugt", false, false, true, true},  {"uge", false, true, true, true},
      {"ult", true, false, false, true},  {"ule", true, true, false, true},
      {"une", true, false, true, true},   {"uno", false, false, false, true},
  };
  for (const Row& row : kRows) {
    EXPECT_EQ(compare(row.word, 1, 2), row.less) << row.word;
    EXPECT_EQ(compare(row.word, 2, 2), row.equal) << row.word;
    EXPECT_EQ(compare(row.word, 0.0, -0.0), row.equal) << row.word;
    EXPECT_EQ(compare(row.word, 3, 2), row.greater) << row.word;
    EXPECT_EQ(compare(row.word, nan, 2), row.unordered) << row.word;
    EXPECT_EQ(compare(row.word, 2, nan), row.unordered) << row.word;
  }
}

TEST(Eval, FloatToIntegerSaturates) {
  const auto to_signed = [](double x, ScalarKind to) {
    return as_signed(value_of(ScalarFPToSI, {real(F64, x)}, to));
  };
  EXPECT_EQ(to_signed(-3.9, I8), -3);
  EXPECT_EQ(to_signed(127.9, I8), 127);
  EXPECT_EQ(to_signed(128.0, I8), 127);
  EXPECT_EQ(to_signed(-128.9, I8), -128);
  EXPECT_EQ(to_signed(-1e30, I64), std::numeric_limits<int64_t>::min());
  EXPECT_EQ(to_signed(HUGE_VAL, I64), std::numeric_limits<int64_t>::max());
  EXPECT_EQ(to_signed(std::nan(""), I32), 0);
  EXPECT_EQ(value_of(ScalarFPToUI, {real(F64, -5.0)}, I8).bits, 0u);
  EXPECT_EQ(value_of(ScalarFPToUI, {real(F64, 255.9)}, I8).bits, 255u);
  EXPECT_EQ(value_of(ScalarFPToUI, {real(F64, 1e30)}, I64).bits, ~uint64_t{0});
}

TEST(Eval, IntegerToFloatRoundsOnce) {
  std::mt19937_64 random(23);
  for (int i = 0; i < 50000; ++i) {
    const auto x = static_cast<int64_t>(random() >> (random() % 64));
    EXPECT_EQ(value_of(ScalarSIToFP, {whole(I64, x)}, F32).bits,
              std::bit_cast<uint32_t>(static_cast<float>(x)));
    EXPECT_EQ(value_of(ScalarUIToFP, {whole(I64, x)}, F32).bits,
              std::bit_cast<uint32_t>(static_cast<float>(static_cast<uint64_t>(x))));
  }
  EXPECT_EQ(to_double(value_of(ScalarSIToFP, {whole(I8, -5)}, F16)), -5.0);
  EXPECT_EQ(to_double(value_of(ScalarUIToFP, {whole(I8, -5)}, F16)), 251.0);
}

TEST(Eval, SignOperationsAndBitcastsMoveBits) {
  const ScalarValue payload{F32, 0xffc12345u};
  EXPECT_EQ(value_of(ScalarNegF, {payload}, F32).bits, 0x7fc12345u);
  EXPECT_EQ(value_of(ScalarAbsF, {payload}, F32).bits, 0x7fc12345u);
  EXPECT_EQ(value_of(ScalarBitcast, {payload}, I32).bits, payload.bits);
  EXPECT_EQ(value_of(ScalarBitcast, {whole(I16, 0x3c00)}, F16), real(F16, 1.0));
}

TEST(Eval, FloatWidthsChange) {
  EXPECT_EQ(value_of(ScalarExtF, {real(F16, 0.5)}, F64), real(F64, 0.5));
  EXPECT_EQ(value_of(ScalarFPTrunc, {real(F32, 1e6)}, F8E4M3), real(F8E4M3, 448.0));
  EXPECT_EQ(value_of(ScalarFPTrunc, {real(F32, -HUGE_VAL)}, F8E4M3), real(F8E4M3, -448.0));
  EXPECT_TRUE(is_nan(value_of(ScalarFPTrunc, {quiet_nan(F32)}, F8E4M3)));
  EXPECT_EQ(to_double(value_of(ScalarFPTrunc, {real(F32, 1e6)}, F8E5M2)), HUGE_VAL);
}

TEST(Eval, RoundingFunctions) {
  const auto apply = [](OpKind op, double x) {
    return to_double(value_of(op, {real(F32, x)}, F32));
  };
  EXPECT_EQ(apply(ScalarRoundF, 2.5), 3.0);
  EXPECT_EQ(apply(ScalarRoundF, -2.5), -3.0);
  EXPECT_EQ(apply(ScalarRoundEvenF, 2.5), 2.0);
  EXPECT_EQ(apply(ScalarRoundEvenF, 3.5), 4.0);
  EXPECT_EQ(apply(ScalarRoundEvenF, -1.5), -2.0);
  EXPECT_TRUE(std::signbit(apply(ScalarRoundEvenF, -0.5)));
  EXPECT_EQ(apply(ScalarRoundEvenF, 0.75), 1.0);
  EXPECT_EQ(apply(ScalarCeilF, 1.25), 2.0);
  EXPECT_EQ(apply(ScalarFloorF, -1.25), -2.0);
  EXPECT_EQ(apply(ScalarTruncF, -1.75), -1.0);
}

TEST(Eval, MathFunctionsAreWithinHalfAUnitOfTheirDefinition) {
  const double samples[] = {-4.0, -1.5, -0.25, 0.0, 0.5, 1.0, 2.75, 9.0};
  struct Row {
    OpKind op;
    double (*function)(double);
  };
  const Row rows[] = {
      {ScalarExpF, [](double x) { return std::exp(x); }},
      {ScalarExp2F, [](double x) { return std::exp2(x); }},
      {ScalarLogF, [](double x) { return std::log(x); }},
      {ScalarLog2F, [](double x) { return std::log2(x); }},
      {ScalarSqrtF, [](double x) { return std::sqrt(x); }},
      {ScalarRsqrtF, [](double x) { return 1 / std::sqrt(x); }},
      {ScalarSinF, [](double x) { return std::sin(x); }},
      {ScalarCosF, [](double x) { return std::cos(x); }},
      {ScalarTanhF, [](double x) { return std::tanh(x); }},
      {ScalarErfF, [](double x) { return std::erf(x); }},
      {ScalarLogisticF, [](double x) { return 1 / (1 + std::exp(-x)); }},
      {ScalarSiluF, [](double x) { return x / (1 + std::exp(-x)); }},
      {ScalarGeluF, [](double x) { return x * 0.5 * std::erfc(-x / std::sqrt(2.0)); }},
  };
  for (const Row& row : rows) {
    for (const double x : samples) {
      const double expected = row.function(x);
      const double found = to_double(value_of(row.op, {real(F32, x)}, F32));
      if (std::isnan(expected)) {
        EXPECT_TRUE(std::isnan(found)) << op_info(row.op).name << " " << x;
      } else if (std::isinf(expected)) {
        EXPECT_EQ(found, expected);
      } else {
        EXPECT_NEAR(found, expected, std::fabs(expected) * 1e-7)
            << op_info(row.op).name << " " << x;
      }
    }
  }
  const auto gelu = [](GeluForm form, double scale, double x) {
    return to_double(value_of(ScalarGeluF, {real(F64, x)}, F64,
                              {.choice = static_cast<uint64_t>(form), .scale = scale}));
  };
  EXPECT_NEAR(gelu(GeluForm::Tanh, 0, 1.0), 0.8411919906082768, 1e-12);
  EXPECT_NEAR(gelu(GeluForm::Logistic, 1.702, 1.0), 0.8457957659328212, 1e-12);
  EXPECT_EQ(to_double(value_of(ScalarPowF, {real(F32, 2.0), real(F32, 0.5)}, F32)),
            static_cast<float>(std::sqrt(2.0)));
}

TEST(Eval, TurnsAreExactAtQuarters) {
  const auto number = [](double v) { return from_double(F32, v); };
  for (int quarter = -9; quarter <= 9; ++quarter) {
    static constexpr double kSine[] = {0, 1, 0, -1};
    const auto at = static_cast<size_t>((quarter % 4 + 4) % 4);
    EXPECT_EQ(to_double(value_of(ScalarSinTurnsF, {number(quarter / 4.0)}, F32)), kSine[at]);
    EXPECT_EQ(to_double(value_of(ScalarCosTurnsF, {number(quarter / 4.0)}, F32)),
              kSine[(at + 1) % 4]);
  }
  EXPECT_TRUE(is_nan(value_of(ScalarSinTurnsF, {number(HUGE_VAL)}, F32)));
  EXPECT_TRUE(is_nan(value_of(ScalarCosTurnsF, {number(-HUGE_VAL)}, F32)));
}

TEST(Eval, ClampsDifferOnNaN) {
  const ScalarValue nan = quiet_nan(F32), low = from_double(F32, -1), high = from_double(F32, 2);
  const auto clamp = [&](ClampMode mode, ScalarValue v) {
    return eval(ScalarClampF, {v, low, high}, F32, {.choice = static_cast<uint64_t>(mode)}).value;
  };
  for (const ClampMode mode : {ClampMode::Ordered, ClampMode::Number, ClampMode::Ieee}) {
    EXPECT_EQ(clamp(mode, from_double(F32, 5)), high);
    EXPECT_EQ(clamp(mode, from_double(F32, -5)), low);
    EXPECT_EQ(clamp(mode, from_double(F32, 0.5)), from_double(F32, 0.5));
  }
  EXPECT_TRUE(is_nan(clamp(ClampMode::Ordered, nan)));
  EXPECT_EQ(clamp(ClampMode::Number, nan), low);
  EXPECT_TRUE(is_nan(clamp(ClampMode::Ieee, nan)));
}

}  // namespace
}  // namespace loom
