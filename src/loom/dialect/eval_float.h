// The float half of eval.h; only eval.cpp calls it.
#pragma once

#include "loom/dialect/eval.h"

namespace loom::detail {

// Operations whose operands are floats; NotEvaluable for any other.
EvalStatus evaluate_float(OpKind op, const EvalAttrs& attrs, std::span<const ScalarValue> operands,
                          ScalarKind result_kind, ScalarValue& result);

}  // namespace loom::detail
