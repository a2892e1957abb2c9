// Evaluation of one operation on literal operands, for tests.
#pragma once

#include <gtest/gtest.h>

#include <vector>

#include "loom/dialect/eval.h"
#include "loom/dialect/op_info.h"

namespace loom {

__extension__ using Int128 = __int128;

struct Outcome {
  EvalStatus status;
  ScalarValue value;
};
inline Outcome eval(OpKind op, std::vector<ScalarValue> operands, ScalarKind to,
                    EvalAttrs attrs = {}) {
  Outcome outcome{EvalStatus::NotEvaluable, {}};
  outcome.status = evaluate(op, attrs, operands, to, outcome.value);
  return outcome;
}
inline ScalarValue value_of(OpKind op, std::vector<ScalarValue> operands, ScalarKind to,
                            EvalAttrs attrs = {}) {
  const Outcome outcome = eval(op, std::move(operands), to, attrs);
  EXPECT_EQ(outcome.status, EvalStatus::Ok) << op_info(op).name;
  return outcome.value;
}
inline ScalarValue real(ScalarKind kind, double x) { return from_double(kind, x); }
inline ScalarValue whole(ScalarKind kind, int64_t x) {
  return from_bits(kind, static_cast<uint64_t>(x));
}

}  // namespace loom
