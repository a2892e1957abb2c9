// Exact trip counts.
#pragma once

#include <cstdint>
#include <optional>

#include "loom/pass/rewriter.h"

namespace loom {

struct LoopCount {
  int64_t first = 0;
  int64_t step = 1;
  uint64_t trips = 0;
};

// Of a loop [lo, hi) whose bounds and step are exact; nullopt also for a step that is not positive,
// which is a contract violation.
inline std::optional<LoopCount> loop_count(const Rewriter& rewriter, Ref lo, Ref hi, Ref step) {
  const auto first = rewriter.exact_int(lo);
  const auto end = rewriter.exact_int(hi);
  const auto by = rewriter.exact_int(step);
  if (!first || !end || !by || *by <= 0) return std::nullopt;
  if (*first >= *end) return LoopCount{*first, *by, 0};
  const uint64_t distance = static_cast<uint64_t>(*end) - static_cast<uint64_t>(*first);
  return LoopCount{*first, *by, (distance - 1) / static_cast<uint64_t>(*by) + 1};
}

}  // namespace loom
