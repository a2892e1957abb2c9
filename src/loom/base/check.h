// Internal invariants. A breach is a bug in Loom, never a consequence of user input.
//
//   LOOM_CHECK(index < size, "operand index out of range");
#pragma once

namespace loom {

// Called with the breached condition and its place before the process aborts. A tool installs one
// to write a reproducer; the default does nothing. The handler must not throw and may be called
// from any thread.
using CheckHandler = void (*)(const char* file, int line, const char* condition,
                              const char* message);
void set_check_handler(CheckHandler handler);

[[noreturn]] void check_failed(const char* file, int line, const char* condition,
                               const char* message);

}  // namespace loom

#define LOOM_CHECK(condition, message)                               \
  do {                                                               \
    if (!(condition)) [[unlikely]]                                   \
      ::loom::check_failed(__FILE__, __LINE__, #condition, message); \
  } while (false)

#ifdef NDEBUG
#define LOOM_DCHECK(condition, message) \
  do {                                  \
    (void)sizeof(!(condition));         \
  } while (false)
#else
#define LOOM_DCHECK(condition, message) LOOM_CHECK(condition, message)
#endif
