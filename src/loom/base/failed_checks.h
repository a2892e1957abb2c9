// Checks inside of compiled kernels that did not hold, until whoever ran the kernel asks.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace loom {

// How many are kept. Only failed_checks.cpp writes it; it lies here so that asking is one load.
extern std::atomic<size_t> failed_checks_kept;

// Cheap enough for every issue. True when some check failed since it was taken last, by anyone.
inline bool failed_checks_pending() {
  return failed_checks_kept.load(std::memory_order_relaxed) != 0;
}
// What the first check said that failed in a kernel whose arguments are one of the `count` slots
// from `first` on, and forgets all of those. From any thread, once the kernels have ended.
std::optional<std::string> take_failed_check(const uint64_t* first, size_t count);

}  // namespace loom

// Kernels call it (target/x86/kernel_abi.h). Keeps the first text of each `args`, and of a bounded
// number of them, for a caller that never asks.
extern "C" void loom_check_failed(const uint64_t* args, const char* text);
