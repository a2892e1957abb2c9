// The clock that issues are measured with.
#pragma once

#include <chrono>
#include <cstdint>

namespace loom {

// Nanoseconds since some moment. Reading it takes some 20 of them.
inline uint64_t now() {
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                   std::chrono::steady_clock::now().time_since_epoch())
                                   .count());
}

}  // namespace loom
