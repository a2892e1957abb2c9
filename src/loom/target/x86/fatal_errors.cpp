#include "loom/target/x86/fatal_errors.h"

#include <llvm/Support/ErrorHandling.h>
#include <llvm/Support/PrettyStackTrace.h>

#include <mutex>

#include "loom/base/check.h"

namespace loom {
namespace {

thread_local bool is_caught = false;

struct FatalError {
  std::string reason;
};

// LLVM is built without exceptions, so none of its frames holds this one up or cleans up after it.
void on_fatal_error(void* /*data*/, const char* reason, bool /*crash*/) {
  if (is_caught) throw FatalError{reason};
  check_failed("LLVM", 0, "a fatal error", reason);
}

}  // namespace

std::optional<std::string> catch_fatal_error(const std::function<void()>& work) {
  static std::once_flag once;
  std::call_once(once, [] { llvm::install_fatal_error_handler(on_fatal_error); });
  // A list through the frames of LLVM.
  const void* const frames = llvm::SavePrettyStackState();
  std::optional<std::string> failure;
  is_caught = true;
  try {
    work();
  } catch (const FatalError& error) {
    failure = error.reason;
    llvm::RestorePrettyStackState(frames);
  }
  is_caught = false;
  return failure;
}

}  // namespace loom
