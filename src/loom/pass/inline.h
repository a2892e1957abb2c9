// inline: replaces calls by the bodies of their callees.
#pragma once

#include "loom/pass/pass_context.h"

namespace loom {

struct InlineOptions {
  // Inline every call written `pure` to a defined function, not only those that `inline` obliges.
  // A `noinline` on the call or the callee is respected unless the root is a command program, which
  // cannot keep a call.
  bool pure_calls = false;
};

// Calls inside inlined bodies are inlined too; folding happens while cloning. An `inline` call
// whose callee has no body or is reached recursively ends in LOWERING/044. In a command program
// `pure_calls` is always on. False when an error was reported.
bool inline_calls(PassContext& context, OpId root, const InlineOptions& options = {});

}  // namespace loom
