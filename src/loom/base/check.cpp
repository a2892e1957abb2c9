#include "loom/base/check.h"

#include <atomic>
#include <cstdlib>

namespace loom {
namespace {
std::atomic<CheckHandler> installed_handler{nullptr};
}

void set_check_handler(CheckHandler handler) { installed_handler.store(handler); }

void check_failed(const char* file, int line, const char* condition, const char* message) {
  // Taken out first, so that a handler which itself breaches an invariant cannot recurse.
  if (CheckHandler handler = installed_handler.exchange(nullptr)) {
    handler(file, line, condition, message);
  }
  std::abort();
}

}  // namespace loom
