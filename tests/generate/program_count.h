#pragma once

#include <cstdint>
#include <cstdlib>

namespace loom::generate {

// How many random programs a property is tried on: `usual`, or LOOM_GENERATE_PROGRAMS where set
// (250,000 take about an hour).
inline uint64_t program_count(uint64_t usual) {
  const char* wanted = std::getenv("LOOM_GENERATE_PROGRAMS");
  return wanted == nullptr ? usual : std::strtoull(wanted, nullptr, 10);
}

}  // namespace loom::generate
