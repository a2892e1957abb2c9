// What the `where` list of a root says about the arguments of its body.
#pragma once

#include "loom/pass/rewriter.h"

namespace loom {

// Facts of a predicate's argument: a literal, or what is known of the value.
IntFacts argument_facts(const Rewriter& rewriter, const PredicateArg& arg);

// Gives the arguments the facts of the root's predicates and replaces exact ones by constants,
// except those that a signature type mentions.
void assume_signature(Rewriter& rewriter, OpId root, RegionId body);

}  // namespace loom
