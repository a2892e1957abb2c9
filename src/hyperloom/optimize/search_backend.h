// What the backends that search a space have in common.
#pragma once

#include <functional>

#include "hyperloom/optimize/backend.h"
#include "hyperloom/optimize/search.h"

namespace hyperloom::optimize {

using Strategy = std::function<SearchResult(const SearchOptions&, const SearchCalls&)>;

// Searches the attempt's space with `strategy`, by the `config` document's {exhaustive_up_to, most,
// patience, restarts, least_gain, pairs, seeds}. Each improvement is written to
// `workspace`/checkpoint.json at once, so that what is verified outlives a search that is cut off.
// Whether to go on is asked of the attempt's clock through the meter: a replay stops where the
// recorded run stopped.
Outcome search_attempt(Attempt& attempt, const Strategy& strategy);

}  // namespace hyperloom::optimize
