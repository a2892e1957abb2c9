// Replaces what allocates. In a file of its own, so that no compiler sees through it.
#include <cstdlib>
#include <new>

#include "loom/runtime/cpu/count_allocations.h"

namespace {
thread_local uint64_t allocations = 0;
}

uint64_t loom::allocation_count() { return allocations; }

#if defined(__SANITIZE_ADDRESS__)
#define LOOM_COUNT_NEW
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define LOOM_COUNT_NEW
#elif __has_feature(thread_sanitizer)
#define LOOM_COUNT_HOOK
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

#elif defined(LOOM_COUNT_HOOK)

// The thread sanitizer owns operator new as well.
extern "C" int __sanitizer_install_malloc_and_free_hooks(void (*)(const volatile void*, size_t),
                                                         void (*)(const volatile void*));
namespace {
[[maybe_unused]] const int hooked = __sanitizer_install_malloc_and_free_hooks(
    [](const volatile void*, size_t) { ++allocations; }, [](const volatile void*) {});
}  // namespace

#else

extern "C" void* __libc_malloc(size_t size);
extern "C" void* malloc(size_t size) {
  ++allocations;
  return __libc_malloc(size);
}

#endif
