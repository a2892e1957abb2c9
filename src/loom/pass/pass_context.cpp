#include "loom/pass/pass_context.h"

#include "loom/pass/workspace.h"

namespace loom {

PassContext::PassContext(Module& module, Diagnostics& diagnostics, PassWorkspace* lent)
    : module_(module),
      diagnostics_(diagnostics),
      own_(lent == nullptr ? std::make_unique<PassWorkspace>() : nullptr),
      used_(lent == nullptr ? own_.get() : lent) {}

PassContext::~PassContext() = default;

}  // namespace loom
