// Which transfer rule an operation uses.
#pragma once

#include "loom/facts/float_facts.h"
#include "loom/pass/fold.h"

namespace loom {

// Facts of the single result of a pure integer-like operation, from the facts of its operands;
// those of the result's type when no rule applies.
IntFacts result_facts(const Rewriter& rewriter, const FoldInput& input);

// The same for a float result. `operands` are facts of the float operands; integers pass whether
// they may be negative as FloatFacts::kMinus.
FloatFacts float_result_facts(OpKind kind, std::span<const FloatFacts> operands, ScalarKind result);

// Facts that may serve to replace the operation by a constant: a division whose divisor may be zero
// has none, since it must stay.
bool facts_may_replace(const Rewriter& rewriter, const FoldInput& input);

}  // namespace loom
