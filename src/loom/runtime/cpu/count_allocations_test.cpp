// Replaces what allocates. In a file of its own, so that no compiler sees through it.
#include <cstdlib>
#include <new>

#include "loom/runtime/cpu/count_allocations.h"

namespace {
thread_local uint64_t allocations = 0;
}

uint64_t loom::allocation_count() { return allocations; }

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define LOOM_COUNT_NEW
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define LOOM_COUNT_NEW
#endif
#endif

#ifdef LOOM_COUNT_NEW

void* operator new(size_t size) {
  ++allocations;
  if (void* data = std::malloc(size != 0 ? size : 1)) return data;
  throw std::bad_alloc();
}
void* operator new(size_t size, const std::nothrow_t&) noexcept {
  ++allocations;
  return std::malloc(size != 0 ? size : 1);
}
void operator delete(void* data) noexcept { std::free(data); }
void operator delete(void* data, size_t) noexcept { std::free(data); }

#else

extern "C" void* __libc_malloc(size_t size);
extern "C" void* malloc(size_t size) {
  ++allocations;
  return __libc_malloc(size);
}

#endif
