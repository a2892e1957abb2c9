// Compares the declaration of a symbol with its definition, which may live in another module.
#pragma once

#include <string>

#include "loom/ir/module.h"

namespace loom {

struct ContractMatch {
  std::string mismatch;    // what differs; empty when the signatures agree
  std::string undeclared;  // preconditions of the definition that the declaration does not imply
};

// Argument groups, results and purity. Names of dynamic extents compare up to renaming. Both are of
// one kind of symbol.
ContractMatch match_contract(const Module& declaring, OpId declaration, const Module& defining,
                             OpId definition);

}  // namespace loom
