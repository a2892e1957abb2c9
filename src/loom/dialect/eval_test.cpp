#include "loom/dialect/eval_test_util.h"

#include <bit>
#include <cmath>
#include <random>

namespace loom {
namespace {

using enum OpKind;
using enum ScalarKind;

constexpr ScalarKind kIntegers[] = {I1, I8, I16, I32, I64};

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

TEST(Eval, SelectChoosesAndOthersAreNotEvaluable) {
  EXPECT_EQ(value_of(ScfSelect, {whole(I1, 1), whole(I8, 3), whole(I8, 4)}, I8), whole(I8, 3));
  EXPECT_EQ(value_of(ScfSelect, {whole(I1, 0), whole(I8, 3), whole(I8, 4)}, I8), whole(I8, 4));
  EXPECT_EQ(eval(KernelWorkitemId, {}, Index).status, EvalStatus::NotEvaluable);
  EXPECT_EQ(eval(ViewLoad, {whole(I8, 1)}, I8).status, EvalStatus::NotEvaluable);
}

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

// A pure operation on scalars with one scalar result that evaluate() does not know is a gap.
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
