// Search over the choices that a space offers, without knowing what they are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "hyperloom/optimize/space.h"

namespace hyperloom::optimize {

struct SearchOptions {
  // Options of each axis, option 0 included; each is at least 1.
  std::vector<unsigned> sizes;
  uint64_t seed = 0;
  // Spaces up to this many points are tried point by point.
  size_t exhaustive_up_to = 64;
  // The most points that are evaluated, and how many in a row may bring nothing better where the
  // space is too large for every point.
  size_t most = SIZE_MAX;
  size_t patience = SIZE_MAX;
  // A cost that is smaller by no more than this part is noise: no descent follows it, and it is
  // nothing better.
  double least_gain = 0;
  // Fresh starts of a descent after the first one.
  unsigned restarts = 2;
};

// What a search calls. No call is made for a point that was evaluated before.
struct SearchCalls {
  // The cost of a point (less is better), nothing when it is of no use.
  std::function<std::optional<double>(const Point&)> evaluate;
  // Asked in front of each evaluation; false ends the search.
  std::function<bool(size_t evaluated)> go_on;
};

struct SearchResult {
  std::optional<Point> best;  // of what could be evaluated; the origin counts, at cost 1
  double cost = 1;
  size_t evaluated = 0;
  bool exhausted = false;  // nothing was left to try
};

// Every point of a small space, in a seeded random order; else each single change, and then random
// points.
SearchResult search_sampled(const SearchOptions& options, const SearchCalls& calls);
// Greedy coordinate descent: from the origin, then from random points, the best option of each axis
// in turn until no axis gains.
SearchResult search_descent(const SearchOptions& options, const SearchCalls& calls);

}  // namespace hyperloom::optimize
