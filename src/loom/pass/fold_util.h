// Small vocabulary of the fold rules.
#pragma once

#include "loom/pass/fold_rule.h"
#include "loom/pass/op_facts.h"
#include "loom/pass/rewriter.h"

namespace loom::detail {

inline FoldStep step(OpKind kind, TypeId type, std::initializer_list<Ref> operands,
                     uint64_t flags = 0) {
  FoldStep result;
  result.kind = kind;
  result.type = type;
  result.flags = flags;
  for (Ref operand : operands) result.operands[result.count++] = operand;
  return result;
}
inline FoldResult build(FoldStep only) {
  FoldResult result;
  result.steps[0] = only;
  result.step_count = 1;
  return result;
}
inline FoldResult build(FoldStep first, FoldStep second) {
  FoldResult result;
  result.steps[0] = first;
  result.steps[1] = second;
  result.step_count = 2;
  return result;
}

// The scalar that every lane of a vector has, when it is a constant or a splat.
Ref uniform_lane(Rewriter& rewriter, Ref vector);

// The operation behind a reference when it is of that kind.
inline OpId defined_by(const Rewriter& rewriter, Ref ref, OpKind kind) {
  const OpId op = rewriter.defining(ref);
  return op.valid() && rewriter.kind_of(op) == kind ? op : OpId();
}

inline bool is_poison(const Rewriter& rewriter, Ref ref) {
  const OpId op = rewriter.defining(ref);
  if (!op.valid()) return false;
  const OpKind kind = rewriter.kind_of(op);
  return kind == OpKind::ScalarPoison || kind == OpKind::VectorPoison;
}

inline uint64_t flags_of_op(Rewriter& rewriter, OpId op) {
  return eval_attrs(rewriter.module(), op).flags;
}

}  // namespace loom::detail
