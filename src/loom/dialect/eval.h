// What the pure scalar and index operations compute, exactly.
//
// Folding, the interpreter and the tests share this one definition. A pure function without state;
// safe from any thread.
#pragma once

#include <span>

#include "loom/dialect/numeric.h"
#include "loom/dialect/op_kind.h"

namespace loom {

enum class EvalStatus : uint8_t {
  Ok,
  ContractViolation,  // the program has no defined result here: division by zero, broken nsw, ...
  NotEvaluable,       // not a pure scalar operation, or one that needs more than its operands
};

// The attributes that decide a result.
struct EvalAttrs {
  uint64_t choice = 0;  // comparison predicate or gelu form: the case number of its enum
  uint64_t flags = 0;   // Overflow bits of integer ops; fast-math flags do not change results here
  double scale = 0;     // of the logistic gelu
  unsigned offset = 0;  // of a bit field
  unsigned width = 0;
};
EvalAttrs eval_attrs(const Module& module, OpId op);

// Computes one operation. `operands` have the kinds that the verified operation has and
// `result_kind` is the type of its result. `result` is written when the status is Ok.
//
//   - integers wrap at their width; a broken nsw or nuw promise, a shift count that is not below
//     the width, a division by zero and MIN / -1 are contract violations
//   - index and offset results must be representable: [-2^63, 2^63-1] and [0, 2^63-1]
//   - float arithmetic rounds once, to nearest even, denormals kept; math functions are computed in
//     double and rounded; a NaN result is the format's quiet NaN, except that negf, absf, select
//     and bitcast only move bits
//   - also covers scf.select on scalars
EvalStatus evaluate(OpKind op, const EvalAttrs& attrs, std::span<const ScalarValue> operands,
                    ScalarKind result_kind, ScalarValue& result);

}  // namespace loom
