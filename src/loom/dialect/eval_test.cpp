#include "loom/dialect/eval.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <random>

#include "loom/dialect/op_info.h"

namespace loom {
namespace {

using enum OpKind;
using enum ScalarKind;
__extension__ using Int128 = __int128;

constexpr ScalarKind kIntegers[] = {I1, I8, I16, I32, I64};
constexpr ScalarKind kNarrow[] = {F8E4M3, F8E5M2, F16, BF16};

struct Outcome {
  EvalStatus status;
  ScalarValue value;
};
Outcome eval(OpKind op, std::vector<ScalarValue> operands, ScalarKind to, EvalAttrs attrs = {}) {
  Outcome outcome{EvalStatus::NotEvaluable, {}};
  outcome.status = evaluate(op, attrs, operands, to, outcome.value);
  return outcome;
}
ScalarValue value_of(OpKind op, std::vector<ScalarValue> operands, ScalarKind to,
                     EvalAttrs attrs = {}) {
  const Outcome outcome = eval(op, std::move(operands), to, attrs);
  EXPECT_EQ(outcome.status, EvalStatus::Ok) << op_info(op).name;
  return outcome.value;
}
ScalarValue real(ScalarKind kind, double x) { return from_double(kind, x); }
ScalarValue whole(ScalarKind kind, int64_t x) { return from_bits(kind, static_cast<uint64_t>(x)); }

// --- integers -----------------------------------------------------------------------------------

Int128 wide(ScalarValue v, bool is_signed) {
  return is_signed ? Int128{as_signed(v)} : static_cast<Int128>(v.bits);
}

void check_modular(OpKind op, ScalarValue a, ScalarValue b) {
  const auto exact = [&](bool is_signed) {
    const Int128 x = wide(a, is_signed);
    const Int128 y = wide(b, is_signed);
    return op == ScalarAddI ? x + y : op == ScalarSubI ? x - y : x * y;
  };
  const unsigned bits = scalar_bits(a.kind);
  // The product of two unsigned 64-bit numbers needs all 128 bits.
  __extension__ using UInt128 = unsigned __int128;
  const UInt128 unsigned_product = static_cast<UInt128>(a.bits) * b.bits;
  const bool signed_fits =
      exact(true) >= -(Int128{1} << (bits - 1)) && exact(true) < (Int128{1} << (bits - 1));
  const bool unsigned_fits = op == ScalarMulI
                                 ? unsigned_product < (static_cast<UInt128>(1) << bits)
                                 : exact(false) >= 0 && exact(false) < (Int128{1} << bits);
  const ScalarValue wrapped = from_bits(a.kind, static_cast<uint64_t>(exact(true)));
  EXPECT_EQ(value_of(op, {a, b}, a.kind), wrapped);
  for (const uint64_t flags : {kNsw, kNuw, kNsw | kNuw}) {
    const bool keeps = (!(flags & kNsw) || signed_fits) && (!(flags & kNuw) || unsigned_fits);
    const Outcome outcome = eval(op, {a, b}, a.kind, {.flags = flags});
    EXPECT_EQ(outcome.status == EvalStatus::Ok, keeps)
        << op_info(op).name << " " << as_signed(a) << " " << as_signed(b) << " " << flags;
    if (keeps) {
      EXPECT_EQ(outcome.value, wrapped);
    }
  }
}

void check_division(ScalarValue a, ScalarValue b) {
  const bool zero = b.bits == 0;
  const bool overflow = as_signed(b) == -1 && a.bits == uint64_t{1} << (scalar_bits(a.kind) - 1);
  for (const bool is_signed : {true, false}) {
    const Outcome quotient = eval(is_signed ? ScalarDivSI : ScalarDivUI, {a, b}, a.kind);
    const Outcome rest = eval(is_signed ? ScalarRemSI : ScalarRemUI, {a, b}, a.kind);
    if (zero || (is_signed && overflow)) {
      EXPECT_EQ(quotient.status, EvalStatus::ContractViolation);
      EXPECT_EQ(rest.status, EvalStatus::ContractViolation);
      continue;
    }
    const Int128 x = wide(a, is_signed);
    const Int128 y = wide(b, is_signed);
    EXPECT_EQ(quotient.value, from_bits(a.kind, static_cast<uint64_t>(x / y)));
    EXPECT_EQ(rest.value, from_bits(a.kind, static_cast<uint64_t>(x % y)));
  }
}

void check_order(ScalarValue a, ScalarValue b) {
  for (const bool is_signed : {true, false}) {
    const Int128 x = wide(a, is_signed);
    const Int128 y = wide(b, is_signed);
    EXPECT_EQ(value_of(is_signed ? ScalarMinSI : ScalarMinUI, {a, b}, a.kind), x < y ? a : b);
    EXPECT_EQ(value_of(is_signed ? ScalarMaxSI : ScalarMaxUI, {a, b}, a.kind), x < y ? b : a);
    const bool expected[] = {x<y, x <= y, x> y, x >= y};
    for (uint64_t i = 0; i < 4; ++i) {
      const uint64_t predicate = i + (is_signed ? 2 : 6);  // slt ... sge, ult ... uge
      EXPECT_EQ(value_of(ScalarCmpI, {a, b}, I1, {.choice = predicate}).bits, expected[i]);
    }
  }
  EXPECT_EQ(value_of(ScalarCmpI, {a, b}, I1, {.choice = 0}).bits, a.bits == b.bits);
  EXPECT_EQ(value_of(ScalarCmpI, {a, b}, I1, {.choice = 1}).bits, a.bits != b.bits);
}

void check_bits(ScalarValue a, ScalarValue b) {
  EXPECT_EQ(value_of(ScalarAndI, {a, b}, a.kind).bits, a.bits & b.bits);
  EXPECT_EQ(value_of(ScalarOrI, {a, b}, a.kind).bits, a.bits | b.bits);
  EXPECT_EQ(value_of(ScalarXorI, {a, b}, a.kind).bits, a.bits ^ b.bits);
  EXPECT_EQ(value_of(ScalarNegI, {a}, a.kind), from_bits(a.kind, 0 - a.bits));
  const Int128 x = wide(a, true);
  EXPECT_EQ(value_of(ScalarAbsI, {a}, a.kind),
            from_bits(a.kind, static_cast<uint64_t>(x < 0 ? -x : x)));
  const ScalarValue count = from_bits(a.kind, b.bits % scalar_bits(a.kind));
  const Int128 power = Int128{1} << count.bits;
  EXPECT_EQ(value_of(ScalarShlI, {a, count}, a.kind),
            from_bits(a.kind, static_cast<uint64_t>(x * power)));
  EXPECT_EQ(value_of(ScalarShrUI, {a, count}, a.kind).bits,
            static_cast<uint64_t>(wide(a, false) / power));
  const Int128 down = x >= 0 ? x / power : -((-x + power - 1) / power);
  EXPECT_EQ(value_of(ScalarShrSI, {a, count}, a.kind),
            from_bits(a.kind, static_cast<uint64_t>(down)));
}

TEST(Eval, IntegerOperationsAgreeWithWideArithmetic) {
  std::mt19937_64 random(5);
  for (const ScalarKind kind : kIntegers) {
    const uint64_t top = uint64_t{1} << (scalar_bits(kind) - 1);
    std::vector<uint64_t> samples = {0, 1, 2, top - 1, top, top + 1, scalar_mask(kind)};
    for (int i = 0; i < 40; ++i) samples.push_back(random() >> (random() % 64));
    for (const uint64_t x : samples) {
      for (const uint64_t y : samples) {
        const ScalarValue a = from_bits(kind, x);
        const ScalarValue b = from_bits(kind, y);
        for (const OpKind op : {ScalarAddI, ScalarSubI, ScalarMulI}) check_modular(op, a, b);
        check_division(a, b);
        check_order(a, b);
        check_bits(a, b);
      }
    }
  }
}

TEST(Eval, ShiftCountsMustStayBelowTheWidth) {
  for (const OpKind op : {ScalarShlI, ScalarShrSI, ScalarShrUI}) {
    EXPECT_EQ(eval(op, {whole(I8, 1), whole(I8, 8)}, I8).status, EvalStatus::ContractViolation);
    EXPECT_EQ(eval(op, {whole(I8, 1), whole(I8, -1)}, I8).status, EvalStatus::ContractViolation);
    EXPECT_EQ(eval(op, {whole(I8, 1), whole(I8, 7)}, I8).status, EvalStatus::Ok);
  }
  for (const OpKind op : {IndexShl, IndexShrS, IndexShrU}) {
    EXPECT_EQ(eval(op, {whole(Index, 1), whole(Index, 64)}, Index).status,
              EvalStatus::ContractViolation);
  }
  EXPECT_EQ(eval(ScalarShlI, {whole(I8, 64), whole(I8, 1)}, I8, {.flags = kNsw}).status,
            EvalStatus::ContractViolation);
  EXPECT_EQ(value_of(ScalarShlI, {whole(I8, 64), whole(I8, 1)}, I8, {.flags = kNuw}).bits, 128u);
}

TEST(Eval, IntegerWidthsChangeBySignZeroAndTruncation) {
  EXPECT_EQ(value_of(ScalarExtSI, {whole(I8, -2)}, I32).bits, 0xfffffffeu);
  EXPECT_EQ(value_of(ScalarExtUI, {whole(I8, -2)}, I32).bits, 0xfeu);
  EXPECT_EQ(value_of(ScalarExtSI, {whole(I1, 1)}, I8).bits, 0xffu);
  EXPECT_EQ(value_of(ScalarTruncI, {whole(I32, 0x1234)}, I8).bits, 0x34u);
}

// --- index and offset ---------------------------------------------------------------------------

TEST(Eval, AddressArithmeticStaysRepresentable) {
  std::mt19937_64 random(9);
  constexpr Int128 kLimit = Int128{1} << 63;
  for (int i = 0; i < 20000; ++i) {
    for (const ScalarKind kind : {Index, Offset}) {
      ScalarValue a = from_bits(kind, random() >> (random() % 64));
      ScalarValue b = from_bits(kind, random() >> (random() % 64));
      if (kind == Offset) a.bits >>= 1, b.bits >>= 1;
      const Int128 x = as_signed(a);
      const Int128 y = as_signed(b);
      const Int128 least = kind == Offset ? Int128{0} : -kLimit;
      const auto check = [&](OpKind op, Int128 exact) {
        const Outcome outcome = eval(op, {a, b}, kind);
        if (exact < least || exact >= kLimit) {
          EXPECT_EQ(outcome.status, EvalStatus::ContractViolation) << op_info(op).name;
        } else {
          EXPECT_EQ(outcome.value, from_bits(kind, static_cast<uint64_t>(exact)));
        }
      };
      check(IndexAdd, x + y);
      check(IndexSub, x - y);
      if (kind == Index) check(IndexMul, x * y);
    }
  }
  EXPECT_EQ(
      as_signed(value_of(IndexMadd, {whole(Index, -3), whole(Index, 5), whole(Index, 4)}, Index)),
      -11);
  EXPECT_EQ(value_of(IndexScale, {whole(Index, 6), whole(Offset, 4)}, Offset), whole(Offset, 24));
  EXPECT_EQ(eval(IndexScale, {whole(Index, -1), whole(Offset, 4)}, Offset).status,
            EvalStatus::ContractViolation);
}

TEST(Eval, IndexDivisionKeepsItsContract) {
  for (const OpKind op : {IndexDiv, IndexRem}) {
    EXPECT_EQ(eval(op, {whole(Index, 7), whole(Index, 0)}, Index).status,
              EvalStatus::ContractViolation);
    EXPECT_EQ(eval(op, {whole(Index, -7), whole(Index, 2)}, Index).status,
              EvalStatus::ContractViolation);
    EXPECT_EQ(eval(op, {whole(Index, 7), whole(Index, -2)}, Index).status,
              EvalStatus::ContractViolation);
  }
  EXPECT_EQ(as_signed(value_of(IndexDiv, {whole(Index, 7), whole(Index, 2)}, Index)), 3);
  EXPECT_EQ(as_signed(value_of(IndexRem, {whole(Index, 7), whole(Index, 2)}, Index)), 1);
  EXPECT_EQ(as_signed(value_of(IndexMin, {whole(Index, -7), whole(Index, 2)}, Index)), -7);
  EXPECT_EQ(as_signed(value_of(IndexMax, {whole(Index, -7), whole(Index, 2)}, Index)), 2);
}

TEST(Eval, CastsAcrossTheAddressDomain) {
  EXPECT_EQ(as_signed(value_of(IndexCast, {whole(I8, -1)}, Index)), -1);
  EXPECT_EQ(value_of(IndexCast, {whole(I1, 1)}, Index).bits, 1u);
  EXPECT_EQ(value_of(IndexCast, {whole(I8, -1)}, Offset).bits, 255u);
  EXPECT_EQ(value_of(IndexCast, {whole(I1, 1)}, Offset).bits, 1u);
  EXPECT_EQ(eval(IndexCast, {whole(I64, -1)}, Offset).status, EvalStatus::ContractViolation);
  EXPECT_EQ(value_of(IndexCast, {whole(Index, -2)}, I16).bits, 0xfffeu);
  EXPECT_EQ(eval(IndexCast, {whole(Index, -2)}, Offset).status, EvalStatus::ContractViolation);
  EXPECT_EQ(value_of(IndexCast, {whole(Offset, 9)}, Index), whole(Index, 9));
}

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

TEST(Eval, SelectChoosesAndOthersAreNotEvaluable) {
  EXPECT_EQ(value_of(ScfSelect, {whole(I1, 1), whole(I8, 3), whole(I8, 4)}, I8), whole(I8, 3));
  EXPECT_EQ(value_of(ScfSelect, {whole(I1, 0), whole(I8, 3), whole(I8, 4)}, I8), whole(I8, 4));
  EXPECT_EQ(eval(KernelWorkitemId, {}, Index).status, EvalStatus::NotEvaluable);
  EXPECT_EQ(eval(ViewLoad, {whole(I8, 1)}, I8).status, EvalStatus::NotEvaluable);
}

// A pure operation on scalars with one scalar result that evaluate() does not know is a gap.
// --- the second tier, against counting and searching -------------------------------------------

TEST(Eval, BitCountsAndRotationsOfEveryByte) {
  for (unsigned x = 0; x < 256; ++x) {
    unsigned ones = 0, leading = 0, trailing = 0;
    for (unsigned bit = 0; bit < 8; ++bit) ones += x >> bit & 1;
    while (leading < 8 && (x >> (7 - leading) & 1) == 0) ++leading;
    while (trailing < 8 && (x >> trailing & 1) == 0) ++trailing;
    EXPECT_EQ(value_of(ScalarCtpopI, {from_bits(I8, x)}, I8).bits, ones);
    EXPECT_EQ(value_of(ScalarCtlzI, {from_bits(I8, x)}, I8).bits, leading);
    EXPECT_EQ(value_of(ScalarCttzI, {from_bits(I8, x)}, I8).bits, trailing);
    EXPECT_EQ(value_of(IndexCtpop, {from_bits(Index, x)}, Index).bits, ones);
    EXPECT_EQ(value_of(IndexCtlz, {from_bits(Index, x)}, Index).bits, leading + 56);
    unsigned turned = x;
    for (unsigned count = 0; count < 20; ++count) {
      EXPECT_EQ(value_of(ScalarRotLI, {from_bits(I8, x), from_bits(I8, count)}, I8).bits, turned);
      EXPECT_EQ(value_of(ScalarRotRI, {from_bits(I8, turned), from_bits(I8, count)}, I8).bits, x);
      turned = (turned << 1 | turned >> 7) & 255;
    }
  }
  EXPECT_EQ(value_of(IndexCttz, {from_bits(Index, 0)}, Index).bits, 64u);
}

TEST(Eval, RoundedQuotientsAreTheNearestFromTheirSide) {
  for (int x = -128; x < 128; ++x) {
    for (int y = -128; y < 128; ++y) {
      const auto a = from_bits(I8, static_cast<uint64_t>(x));
      const auto b = from_bits(I8, static_cast<uint64_t>(y));
      if (y == 0 || (x == -128 && y == -1)) {
        EXPECT_EQ(eval(ScalarCeilDivSI, {a, b}, I8).status, EvalStatus::ContractViolation);
        EXPECT_EQ(eval(ScalarFloorDivSI, {a, b}, I8).status, EvalStatus::ContractViolation);
        continue;
      }
      const double exact = static_cast<double>(x) / y;
      EXPECT_EQ(as_signed(value_of(ScalarCeilDivSI, {a, b}, I8)), std::ceil(exact));
      EXPECT_EQ(as_signed(value_of(ScalarFloorDivSI, {a, b}, I8)), std::floor(exact));
      const double whole = static_cast<double>(a.bits) / static_cast<double>(b.bits);
      EXPECT_EQ(static_cast<double>(value_of(ScalarCeilDivUI, {a, b}, I8).bits), std::ceil(whole));
    }
  }
}

TEST(Eval, BitFields) {
  const ScalarValue x = from_bits(I16, 0xa5c3);
  for (unsigned offset = 0; offset < 16; ++offset) {
    for (unsigned width = 1; width + offset <= 16; ++width) {
      int64_t expected = 0;
      for (unsigned bit = 0; bit < width; ++bit) {
        expected += static_cast<int64_t>(x.bits >> (offset + bit) & 1) << bit;
      }
      const EvalAttrs attrs{.offset = offset, .width = width};
      EXPECT_EQ(as_signed(eval(ScalarBitfieldExtractU, {x}, I64, attrs).value), expected);
      if ((expected >> (width - 1) & 1) != 0) expected -= int64_t{1} << width;
      EXPECT_EQ(as_signed(eval(ScalarBitfieldExtractS, {x}, I64, attrs).value), expected);
    }
  }
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

TEST(Eval, CoversEveryPureScalarOperation) {
  for (size_t i = 0; i < kOpKindCount; ++i) {
    const OpInfo& info = op_info(static_cast<OpKind>(i));
    const bool scalar = info.dialect == "scalar" || info.dialect == "index";
    if (!scalar || info.has_groups || info.operands.empty() || info.results.size() != 1) continue;
    const auto first_accepted = [](const Constraint& constraint) {
      for (size_t k = 0; k < kScalarCount; ++k) {
        const auto kind = static_cast<ScalarKind>(k);
        if (constraint.accepts({.element = kind})) return kind;
      }
      return Index;
    };
    std::vector<ScalarValue> operands;
    for (const OperandSpec& spec : info.operands) {
      operands.push_back({first_accepted(*spec.constraint), 1});
    }
    const EvalAttrs attrs{.offset = 0, .width = 1};
    EXPECT_NE(eval(info.kind, operands, first_accepted(*info.results[0].constraint), attrs).status,
              EvalStatus::NotEvaluable)
        << info.name;
  }
}

}  // namespace
}  // namespace loom
