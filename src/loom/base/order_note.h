// Tells the thread sanitizer of an order that it cannot see, because the library that makes it is
// not instrumented. Without the sanitizer it is nothing.
#pragma once

#if defined(__SANITIZE_THREAD__)
#define LOOM_NOTE_ORDER
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define LOOM_NOTE_ORDER
#endif
#endif

#ifdef LOOM_NOTE_ORDER
extern "C" void __tsan_acquire(void* address);
extern "C" void __tsan_release(void* address);
#endif

namespace loom {

// What was written before note_before(chain) is there after a later note_after(chain). A chain is
// any address.
#ifdef LOOM_NOTE_ORDER
inline void note_before(const void* chain) { __tsan_release(const_cast<void*>(chain)); }
inline void note_after(const void* chain) { __tsan_acquire(const_cast<void*>(chain)); }
#else
inline void note_before(const void*) {}
inline void note_after(const void*) {}
#endif

}  // namespace loom
