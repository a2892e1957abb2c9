// Folds one operation before it exists.
#pragma once

#include <span>

#include "loom/dialect/eval.h"
#include "loom/pass/workspace.h"

namespace loom {

class Rewriter;

struct FoldInput {
  OpKind kind{};
  std::span<const Ref> operands;  // resolved
  EvalAttrs attrs;
  TypeId result;
};

// An operation with one result that replaces the folded one. Its only attribute is its flags.
struct FoldStep {
  OpKind kind{};
  unsigned count = 0;
  Ref operands[3];
  uint64_t flags = 0;
  TypeId type;
};

// Nothing; or an existing value or constant (`ref`); or one or two operations to build instead. In
// the second step an invalid operand stands for the result of the first.
struct FoldResult {
  Ref ref;
  FoldStep steps[2];
  unsigned step_count = 0;

  bool folded() const { return ref.valid() || step_count != 0; }
  static FoldResult none() { return {}; }
  static FoldResult of(Ref ref) { return {.ref = ref}; }
};

// True for kinds that `fold` may ever change.
bool is_foldable(OpKind kind);

// Exact evaluation, the algebraic identities of the language reference, and what facts decide.
// Never folds a contract violation; float results change only as the flags allow.
FoldResult fold(Rewriter& rewriter, const FoldInput& input);

namespace detail {
FoldResult fold_integer(Rewriter& rewriter, const FoldInput& input);
FoldResult fold_float(Rewriter& rewriter, const FoldInput& input);
FoldResult fold_conversion(Rewriter& rewriter, const FoldInput& input);
bool is_foldable_vector(OpKind kind);
// Pure scalar and vector operations, whose results are poison when an operand is.
bool carries_poison(OpKind kind);
// Poison of that type, or the only value of a vector without lanes.
FoldStep poison_of(Rewriter& rewriter, TypeId type);
FoldResult fold_vector(Rewriter& rewriter, const FoldInput& input);
}  // namespace detail

}  // namespace loom
