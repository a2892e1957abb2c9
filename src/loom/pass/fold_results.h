// Folds of operations with any number of results, and while loops that end at once.
#pragma once

#include <vector>

#include "loom/pass/rewriter.h"

namespace loom {

// What the results of the operation are when all of them are known: the offsets of a buffer.pack
// with exact sizes, the chosen row of an scf.lookup, poison. False leaves `results` unspecified.
// New operations go to `place`.
bool fold_results(Rewriter& rewriter, OpId op, InsertionPoint place, std::vector<Ref>& results);

// The condition of an scf.while is false before anything in its regions was computed.
bool while_never_runs(const Rewriter& rewriter, OpId op);

}  // namespace loom
