// LLVM's fatal errors, which end the process by themselves.
#pragma once

#include <functional>
#include <optional>
#include <string>

namespace loom {

// Calls `work`. What it says where LLVM reports a fatal error in this thread meanwhile; then LLVM
// was left in the midst of its work, so that what it worked on may be neither used nor destroyed.
// Fatal errors outside of such a call are failed checks of ours (base/check.h). From any thread;
// calls do not nest.
std::optional<std::string> catch_fatal_error(const std::function<void()>& work);

}  // namespace loom
