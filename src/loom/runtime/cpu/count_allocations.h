// Counts allocations of the test program of this room.
#pragma once

#include <cstdint>

namespace loom {

// By the calling thread since it began: calls of malloc, and with sanitizers, which own malloc, of
// operator new.
uint64_t allocation_count();

}  // namespace loom
