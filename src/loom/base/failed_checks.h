// Checks inside of compiled kernels that did not hold, until whoever ran the kernel asks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace loom {

// Cheap enough for every issue. True when some check failed since it was taken last, by anyone.
bool failed_checks_pending();
// What the first check said that failed in a kernel whose arguments are one of the `count` slots
// from `first` on, and forgets all of those. From any thread, once the kernels have ended.
std::optional<std::string> take_failed_check(const uint64_t* first, size_t count);

}  // namespace loom

// Kernels call it (target/x86/kernel_abi.h). Keeps the first text of each `args`, and of a bounded
// number of them, for a caller that never asks.
extern "C" void loom_check_failed(const uint64_t* args, const char* text);
