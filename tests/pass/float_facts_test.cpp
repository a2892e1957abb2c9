// Float facts against what the operations compute, over every pair of 8-bit floats and every f16.
#include <gtest/gtest.h>

#include "loom/dialect/eval.h"
#include "loom/dialect/op_info.h"
#include "loom/pass/op_facts.h"

namespace loom {
namespace {

using enum OpKind;

void expect_sound(OpKind kind, std::initializer_list<ScalarValue> operands, ScalarKind to,
                  const EvalAttrs& attrs = {}) {
  FloatFacts known[3];
  size_t count = 0;
  for (const ScalarValue& value : operands) {
    known[count++] = is_float(value.kind) ? FloatFacts::exactly(to_double(value)) : FloatFacts{};
  }
  ScalarValue result;
  if (evaluate(kind, attrs, {operands.begin(), operands.size()}, to, result) != EvalStatus::Ok) {
    return;
  }
  const FloatFacts facts = float_result_facts(kind, {known, count}, to);
  const FloatFacts is = FloatFacts::exactly(to_double(result));
  ASSERT_EQ(meet(facts, is), is) << op_info(kind).name << " of " << to_double(*operands.begin())
                                 << " gives " << to_double(result) << ", facts: " << to_text(facts);
}

TEST(FloatFacts, BinaryRulesHoldForEveryPairOfSmallFloats) {
  for (const ScalarKind kind : {ScalarKind::F8E4M3, ScalarKind::F8E5M2}) {
    for (uint64_t a = 0; a < 256; ++a) {
      for (uint64_t b = 0; b < 256; ++b) {
        const ScalarValue x = from_bits(kind, a), y = from_bits(kind, b);
        for (const OpKind op : {ScalarAddF, ScalarSubF, ScalarMulF, ScalarDivF, ScalarMinimumF,
                                ScalarMaximumF, ScalarMinNumF, ScalarMaxNumF}) {
          expect_sound(op, {x, y}, kind);
        }
        if (a % 7 == 0) {
          const ScalarValue z = from_bits(kind, (a * 3 + b) & 0xff);
          expect_sound(ScalarFmaF, {x, y, z}, kind);
          for (uint64_t mode = 0; mode < 3; ++mode) {
            expect_sound(ScalarClampF, {x, y, z}, kind, {.choice = mode});
          }
        }
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST(FloatFacts, UnaryRulesHoldForEveryHalf) {
  for (uint64_t a = 0; a < 65536; ++a) {
    for (const ScalarKind kind : {ScalarKind::F16, ScalarKind::BF16}) {
      const ScalarValue x = from_bits(kind, a);
      for (const OpKind op :
           {ScalarNegF, ScalarAbsF, ScalarSqrtF, ScalarExpF, ScalarExp2F, ScalarSinF}) {
        expect_sound(op, {x}, kind);
      }
      for (const ScalarKind to : {ScalarKind::F8E4M3, ScalarKind::F8E5M2, ScalarKind::F32}) {
        expect_sound(to == ScalarKind::F32 ? ScalarExtF : ScalarFPTrunc, {x}, to);
      }
    }
    for (const ScalarKind to : {ScalarKind::F16, ScalarKind::F8E4M3, ScalarKind::F32}) {
      expect_sound(ScalarSIToFP, {from_bits(ScalarKind::I32, a * 65537)}, to);
      expect_sound(ScalarUIToFP, {from_bits(ScalarKind::I32, a * 65537)}, to);
    }
    if (HasFatalFailure()) return;
  }
}

TEST(FloatFacts, RulesSayWhatCannotHappen) {
  const FloatFacts finite{FloatFacts::kFinite}, plus{FloatFacts::kPlus};
  const ScalarKind f32 = ScalarKind::F32;
  EXPECT_EQ(to_text(facts::add(finite, finite, f32)), "-inf - + +inf");
  EXPECT_EQ(to_text(facts::add(plus, finite, f32)), "- + +inf");
  EXPECT_EQ(to_text(facts::mul(plus, plus, f32)), "+ +inf");
  EXPECT_EQ(to_text(facts::mul(finite, finite, ScalarKind::F8E4M3)), "- +");
  EXPECT_EQ(to_text(facts::abs({})), "nan + +inf");
  EXPECT_EQ(to_text(facts::sqrt(plus)), "+");
  EXPECT_EQ(to_text(facts::exp(finite, f32)), "+ +inf");
  EXPECT_EQ(to_text(facts::from_integer(true, f32)), "- +");
  EXPECT_EQ(holds(PredicateKind::NotNan, finite), true);
  EXPECT_EQ(holds(PredicateKind::Finite, FloatFacts{FloatFacts::kNan}), false);
  EXPECT_EQ(holds(PredicateKind::Finite, FloatFacts{}), std::nullopt);
}

}  // namespace
}  // namespace loom
