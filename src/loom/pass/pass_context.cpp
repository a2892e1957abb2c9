#include "loom/pass/pass_context.h"

#include "loom/pass/workspace.h"

namespace loom {

PassContext::PassContext(Module& module, Diagnostics& diagnostics)
    : module_(module), diagnostics_(diagnostics), workspace_(std::make_unique<PassWorkspace>()) {}

PassContext::~PassContext() = default;

}  // namespace loom
