// Replaces what allocates. In a file of its own, so that no compiler sees through it.
#include <malloc.h>

#include <algorithm>
#include <cerrno>
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

namespace {
thread_local int64_t live = 0;
thread_local int64_t peak = 0;

void* took(void* data) {
  if (data == nullptr) return data;
  live += static_cast<int64_t>(malloc_usable_size(data));
  peak = std::max(peak, live);
  return data;
}
void gave(void* data) {
  if (data != nullptr) live -= static_cast<int64_t>(malloc_usable_size(data));
}
}  // namespace

extern "C" void* __libc_malloc(size_t size);
extern "C" void* __libc_calloc(size_t count, size_t size);
extern "C" void* __libc_realloc(void* data, size_t size);
extern "C" void* __libc_memalign(size_t alignment, size_t size);
extern "C" void __libc_free(void* data);

extern "C" void* malloc(size_t size) {
  ++allocations;
  return took(__libc_malloc(size));
}
extern "C" void* calloc(size_t count, size_t size) { return took(__libc_calloc(count, size)); }
extern "C" void* realloc(void* data, size_t size) {
  gave(data);
  void* const moved = __libc_realloc(data, size);
  return took(moved == nullptr && size != 0 ? data : moved) == nullptr ? nullptr : moved;
}
extern "C" void* memalign(size_t alignment, size_t size) {
  return took(__libc_memalign(alignment, size));
}
extern "C" void* aligned_alloc(size_t alignment, size_t size) { return memalign(alignment, size); }
extern "C" int posix_memalign(void** data, size_t alignment, size_t size) {
  *data = memalign(alignment, size);
  return *data != nullptr ? 0 : ENOMEM;
}
extern "C" void free(void* data) {
  gave(data);
  __libc_free(data);
}

std::optional<int64_t> loom::live_bytes() { return live; }
int64_t loom::peak_bytes() { return peak; }
void loom::reset_peak_bytes() { peak = live; }
#define LOOM_LIVE_BYTES

#endif

#ifndef LOOM_LIVE_BYTES
std::optional<int64_t> loom::live_bytes() { return std::nullopt; }
int64_t loom::peak_bytes() { return 0; }
void loom::reset_peak_bytes() {}
#endif
