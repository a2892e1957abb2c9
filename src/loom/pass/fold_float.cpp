// Algebraic folds of float operations: value-preserving without flags, more where flags allow it.
#include <cmath>

#include "loom/pass/fold_util.h"

namespace loom::detail {
namespace {

using enum OpKind;

class FloatFolder {
 public:
  FloatFolder(Rewriter& rewriter, const FoldInput& input)
      : rewriter_(rewriter), input_(input), flags_(input.attrs.flags) {
    a_ = input.operands[0];
    b_ = input.operands.size() > 1 ? input.operands[1] : a_;
  }

  FoldResult run() {
    switch (input_.kind) {
      case ScalarAddF:
        if (allows(kNsz) && is_zero(b_)) return rule<"addf zero">(take(a_));
        if (allows(kNsz) && is_zero(a_)) return rule<"addf zero">(take(b_));
        if (const FoldResult r = contract(a_, b_); r.folded()) return r;
        return contract(b_, a_);
      case ScalarSubF:
        if (allows(kNsz) && is_zero(b_)) return rule<"subf zero">(take(a_));
        if (allows(kNnan | kNsz) && is_zero(a_)) {
          return rule<"subf from zero">(build(step(ScalarNegF, input_.result, {b_}, flags_)));
        }
        return FoldResult::none();
      case ScalarMulF:
        return mul();
      case ScalarDivF:
        return div();
      case ScalarFmaF:
        return fma();
      case ScalarNegF:
        return rule<"negf of negf">(inner_of(ScalarNegF));
      case ScalarAbsF:
        return abs();
      case ScalarCopysignF:
        return copy_sign();
      default:
        return FoldResult::none();
    }
  }

 private:
  FoldResult take(Ref ref) { return FoldResult::of(ref); }
  bool allows(uint64_t flags) const { return (flags_ & flags) == flags; }
  std::optional<double> number(Ref ref) const {
    const auto value = rewriter_.exact(ref);
    return value ? std::optional(to_double(*value)) : std::nullopt;
  }
  bool is(Ref ref, double wanted) const { return number(ref) == std::optional(wanted); }
  bool is_zero(Ref ref) const { return is(ref, 0.0); }

  // A product that nothing else uses becomes part of the sum when both carry `contract`.
  FoldResult contract(Ref product, Ref addend) {
    const OpId op = defined_by(rewriter_, product, ScalarMulF);
    if (!op.valid() || !allows(kContract)) return FoldResult::none();
    const uint64_t inner = flags_of_op(rewriter_, op);
    if ((inner & kContract) == 0 || !rewriter_.single_use(product)) return FoldResult::none();
    return rule<"addf a product">(
        build(step(ScalarFmaF, input_.result,
                   {rewriter_.operand(op, 0), rewriter_.operand(op, 1), addend}, flags_ & inner)));
  }

  FoldResult mul() {
    if (is(b_, 1.0)) return rule<"mulf one">(take(a_));
    if (is(a_, 1.0)) return rule<"mulf one">(take(b_));
    if (allows(kNnan | kNinf | kNsz)) {
      if (is_zero(b_)) return rule<"mulf zero">(take(b_));
      if (is_zero(a_)) return rule<"mulf zero">(take(a_));
    }
    return FoldResult::none();
  }

  FoldResult div() {
    if (is(b_, 1.0)) return rule<"divf one">(take(a_));
    const auto divisor = rewriter_.exact(b_);
    if (!divisor || !allows(kArcp | kNnan | kNinf)) return FoldResult::none();
    const ScalarKind kind = divisor->kind;
    ScalarValue reciprocal;
    const ScalarValue operands[] = {from_double(kind, 1.0), *divisor};
    if (evaluate(ScalarDivF, {}, operands, kind, reciprocal) != EvalStatus::Ok) {
      return FoldResult::none();
    }
    const double value = to_double(reciprocal);
    if (!std::isfinite(value) || value == 0.0) return FoldResult::none();
    return rule<"divf constant">(
        build(step(ScalarMulF, input_.result, {a_, rewriter_.constant(reciprocal)}, flags_)));
  }

  FoldResult fma() {
    const Ref c = input_.operands[2];
    if (is(a_, 1.0) || is(b_, 1.0)) {
      const Ref other = is(a_, 1.0) ? b_ : a_;
      return rule<"fmaf one">(build(step(ScalarAddF, input_.result, {other, c}, flags_)));
    }
    if (allows(kNsz) && is_zero(c)) {
      return rule<"fmaf zero addend">(build(step(ScalarMulF, input_.result, {a_, b_}, flags_)));
    }
    return FoldResult::none();
  }

  FoldResult inner_of(OpKind kind) {
    const OpId op = defined_by(rewriter_, a_, kind);
    return op.valid() ? take(rewriter_.operand(op, 0)) : FoldResult::none();
  }

  FoldResult abs() {
    if (defined_by(rewriter_, a_, ScalarAbsF).valid()) return rule<"absf of absf">(take(a_));
    const OpId op = defined_by(rewriter_, a_, ScalarNegF);
    if (!op.valid()) return FoldResult::none();
    return rule<"absf of negf">(
        build(step(ScalarAbsF, input_.result, {rewriter_.operand(op, 0)}, flags_)));
  }

  FoldResult copy_sign() {
    if (a_ == b_) return rule<"copysignf of itself">(take(a_));
    for (const OpKind kind : {ScalarNegF, ScalarAbsF}) {
      // The magnitude has no sign of its own.
      const OpId op = defined_by(rewriter_, a_, kind);
      if (!op.valid()) continue;
      return rule<"copysignf of another sign">(
          build(step(ScalarCopysignF, input_.result, {rewriter_.operand(op, 0), b_})));
    }
    return FoldResult::none();
  }

  Rewriter& rewriter_;
  const FoldInput& input_;
  const uint64_t flags_;
  Ref a_, b_;
};

}  // namespace

FoldResult fold_float(Rewriter& rewriter, const FoldInput& input) {
  return FloatFolder(rewriter, input).run();
}

}  // namespace loom::detail
