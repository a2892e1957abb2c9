// Counts allocations of the test program of this room.
#pragma once

#include <cstdint>
#include <optional>

namespace loom {

// By the calling thread since it began: calls of malloc, and with sanitizers, which own malloc, of
// operator new.
uint64_t allocation_count();

// Bytes that the thread has allocated and not freed, and the most that there were since the last
// reset_peak_bytes(); what another thread frees is not seen. Nothing with sanitizers.
std::optional<int64_t> live_bytes();
int64_t peak_bytes();
void reset_peak_bytes();

}  // namespace loom
