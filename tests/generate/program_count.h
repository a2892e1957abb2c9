#pragma once

#include <cstdint>
#include <cstdlib>
#include <ranges>

namespace loom::generate {

// How many random programs a property is tried on: `usual`, or LOOM_GENERATE_PROGRAMS where set
// (250,000 take about an hour).
inline uint64_t program_count(uint64_t usual) {
  const char* wanted = std::getenv("LOOM_GENERATE_PROGRAMS");
  return wanted == nullptr ? usual : std::strtoull(wanted, nullptr, 10);
}

// The seeds of those programs: from 0, or from LOOM_GENERATE_FIRST where set.
inline auto program_seeds(uint64_t usual) {
  const char* wanted = std::getenv("LOOM_GENERATE_FIRST");
  const uint64_t first = wanted == nullptr ? 0 : std::strtoull(wanted, nullptr, 10);
  return std::views::iota(first, first + program_count(usual));
}

}  // namespace loom::generate
