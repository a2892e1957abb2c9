// For tests in which two threads must run at the same time.
#pragma once

#include <sched.h>

namespace loom {

// Whether this process may use two cores; a machine that has more may not give them.
inline bool has_two_cores() {
  cpu_set_t allowed;
  return sched_getaffinity(0, sizeof allowed, &allowed) != 0 || CPU_COUNT(&allowed) > 1;
}

}  // namespace loom
