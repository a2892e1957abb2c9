// What the `where` list of a root says about the arguments of its body.
#pragma once

#include "loom/pass/rewriter.h"

namespace loom {

// Gives the arguments the facts and relations of the root's predicates; extents are not negative.
void learn_signature(Rewriter& rewriter, OpId root, RegionId body);
// Gives the arguments the facts of the root's predicates and replaces exact ones by constants,
// except those that a signature type mentions.
void assume_signature(Rewriter& rewriter, OpId root, RegionId body);

}  // namespace loom
