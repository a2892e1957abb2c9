// inline: replaces calls by the bodies of their callees.
#pragma once

#include <cstdint>

#include "loom/pass/pass_context.h"

namespace loom {

// The policy for calls that neither `inline` obliges nor `noinline` forbids: a call is replaced
// when it, or else its callee, is `hot` and the body has at most kInlineHotSize operations, or when
// it is not `cold` and the body has at most kInlineSize. At most kInlineDepth bodies are entered
// into one another, and nothing more is entered by policy once kInlineGrowth operations were made.
// Recursive calls and functions of another calling kind or with a target of their own stay.
inline constexpr uint32_t kInlineSize = 12;
inline constexpr uint32_t kInlineHotSize = 200;
inline constexpr uint32_t kInlineDepth = 16;
inline constexpr uint64_t kInlineGrowth = 20'000;

struct InlineOptions {
  // Inline every call written `pure` to a defined function, not only those that `inline` obliges.
  // A `noinline` on the call or the callee is respected unless the root is a command program, which
  // cannot keep a call.
  bool pure_calls = false;
  // Follow the policy above.
  bool policy = false;
  // The same for bodies of any size, however warm.
  bool large = false;
  // Operations that the root may grow by before the expansion is refused.
  uint64_t max_operations = uint64_t{1} << 24;
};

// Calls inside inlined bodies are inlined too; folding happens while cloning. An `inline` call
// whose callee has no body or is reached recursively ends in LOWERING/044. In a command program
// `pure_calls` is always on. Too large an expansion is LOWERING/004. False when an error was
// reported.
bool inline_calls(PassContext& context, OpId root, const InlineOptions& options = {});

}  // namespace loom
