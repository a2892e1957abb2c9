#include "loom/base/huge_pages.h"

#include <sys/mman.h>

#include <cstdint>

namespace loom {

void prefer_huge_pages(const void* data, size_t bytes) {
  constexpr uintptr_t kHugePage = uintptr_t{2} << 20;
  const auto address = reinterpret_cast<uintptr_t>(data);
  const uintptr_t begin = (address + kHugePage - 1) & ~(kHugePage - 1);
  const uintptr_t end = (address + bytes) & ~(kHugePage - 1);
  if (begin >= end) return;
  void* first = static_cast<std::byte*>(const_cast<void*>(data)) + (begin - address);
  // Refusal only means that the pages stay small.
  (void)::madvise(first, end - begin, MADV_HUGEPAGE);
}

}  // namespace loom
