// Order between two values: from dominating relations and from how the values are made.
#pragma once

#include <optional>
#include <span>

#include "loom/facts/int_facts.h"
#include "loom/pass/workspace.h"

namespace loom {

class Rewriter;

// A comparison that holds at this point of the sweep.
struct Relation {
  Compare compare;
  Ref a, b;
};

// Whether `a compare b` holds, when that follows from a chain of at most a dozen steps each way.
// Steps are the relations, sums with a bounded addend, minima, maxima, quotients, remainders and
// value-preserving casts; where chains do not meet, the ranges of their ends decide. A promise
// about the result of an assume operation says nothing about its operand. Cost bounded by a
// constant.
std::optional<bool> decide(const Rewriter& rewriter, std::span<const Relation> relations,
                           Compare compare, Ref a, Ref b);

}  // namespace loom
