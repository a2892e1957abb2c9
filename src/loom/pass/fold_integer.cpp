// Algebraic folds of index, offset and fixed-width integer operations.
#include <bit>

#include "loom/pass/fold_util.h"

namespace loom::detail {
namespace {

using enum OpKind;

struct Sides {
  Ref a, b;
  std::optional<ScalarValue> ca, cb;
  bool same() const { return a == b; }
};

bool is(const std::optional<ScalarValue>& constant, uint64_t bits) {
  return constant && constant->bits == bits;
}
bool is_ones(const std::optional<ScalarValue>& constant) {
  return constant && constant->bits == scalar_mask(constant->kind);
}

class IntegerFolder {
 public:
  IntegerFolder(Rewriter& rewriter, const FoldInput& input)
      : rewriter_(rewriter),
        input_(input),
        kind_(rewriter.element(input.result)),
        flagged_(input.attrs.flags != 0) {
    s_.a = input.operands[0];
    s_.b = input.operands.size() > 1 ? input.operands[1] : s_.a;
    s_.ca = rewriter.exact(s_.a);
    s_.cb = input.operands.size() > 1 ? rewriter.exact(s_.b) : std::nullopt;
  }

  FoldResult run() {
    switch (input_.kind) {
      case IndexAdd:
      case ScalarAddI:
        return add();
      case IndexSub:
      case ScalarSubI:
        return sub();
      case IndexMul:
      case ScalarMulI:
        return mul();
      case IndexMadd:
        return madd();
      case IndexScale:
        return scale();
      case IndexDiv:
      case ScalarDivSI:
      case ScalarDivUI:
        return div();
      case IndexRem:
      case ScalarRemSI:
      case ScalarRemUI:
        return rem();
      case ScalarNegI:
        return involution();
      case ScalarAbsI:
        return abs();
      case IndexMin:
      case IndexMax:
      case ScalarMinSI:
      case ScalarMaxSI:
      case ScalarMinUI:
      case ScalarMaxUI:
        return extreme();
      default:
        return bitwise();
    }
  }

 private:
  FoldResult take(Ref ref) { return FoldResult::of(ref); }
  Ref number(uint64_t value) { return rewriter_.constant(from_bits(kind_, value)); }
  FoldResult zero() { return take(number(0)); }
  bool is_index_kind() const { return is_address(kind_); }
  // The constant right operand of an unflagged operation of that kind behind `ref`.
  struct Split {
    Ref value;
    ScalarValue constant;
  };
  std::optional<Split> split(Ref ref, OpKind kind) {
    const OpId op = defined_by(rewriter_, ref, kind);
    if (!op.valid() || flags_of_op(rewriter_, op) != 0) return std::nullopt;
    const auto constant = rewriter_.exact(rewriter_.operand(op, 1));
    if (!constant) return std::nullopt;
    return Split{rewriter_.operand(op, 0), *constant};
  }

  FoldResult add() {
    if (is(s_.cb, 0)) return rule<"add zero">(take(s_.a));
    if (is(s_.ca, 0)) return rule<"add zero">(take(s_.b));
    if (!flagged_) {
      if (const FoldResult r = cancel(s_.a, s_.b); r.folded()) return r;
      if (const FoldResult r = cancel(s_.b, s_.a); r.folded()) return r;
    }
    if (s_.cb && !flagged_) {
      if (const auto inner = split(s_.a, input_.kind)) return reassociate(*inner);
    }
    if (input_.kind == IndexAdd && kind_ == ScalarKind::Index) {
      if (const FoldResult r = multiply_add(s_.a, s_.b); r.folded()) return r;
      return multiply_add(s_.b, s_.a);
    }
    return FoldResult::none();
  }

  // x + (y - x) is y.
  FoldResult cancel(Ref x, Ref difference) {
    const OpId op = defined_by(rewriter_, difference, is_index_kind() ? IndexSub : ScalarSubI);
    if (!op.valid() || rewriter_.operand(op, 1) != x || flags_of_op(rewriter_, op) != 0) {
      return FoldResult::none();
    }
    return rule<"add a difference">(take(rewriter_.operand(op, 0)));
  }

  // (x + a) + b is x + (a + b); for addresses only when the sum is representable.
  FoldResult reassociate(const Split& inner) {
    const auto a = as_signed(inner.constant), b = as_signed(*s_.cb);
    int64_t sum = 0;
    const bool overflow = __builtin_add_overflow(a, b, &sum);
    if (is_index_kind() && overflow) return FoldResult::none();
    const uint64_t bits = static_cast<uint64_t>(a) + static_cast<uint64_t>(b);
    return rule<"add constants">(
        build(step(input_.kind, input_.result, {inner.value, number(bits)})));
  }

  FoldResult multiply_add(Ref product, Ref addend) {
    const OpId op = defined_by(rewriter_, product, IndexMul);
    if (!op.valid()) return FoldResult::none();
    return rule<"add a product">(build(step(
        IndexMadd, input_.result, {rewriter_.operand(op, 0), rewriter_.operand(op, 1), addend})));
  }

  FoldResult sub() {
    if (is(s_.cb, 0)) return rule<"sub zero">(take(s_.a));
    if (s_.same()) return rule<"sub itself">(zero());
    if (flagged_) return FoldResult::none();
    // (x + y) - x is y.
    const OpKind adding = is_index_kind() ? IndexAdd : ScalarAddI;
    const OpId sum = defined_by(rewriter_, s_.a, adding);
    if (sum.valid() && flags_of_op(rewriter_, sum) == 0) {
      for (unsigned i = 0; i < 2; ++i) {
        if (rewriter_.operand(sum, i) != s_.b) continue;
        return rule<"sub from a sum">(take(rewriter_.operand(sum, 1 - i)));
      }
    }
    if (!s_.cb || kind_ == ScalarKind::Offset) return FoldResult::none();
    if (kind_ == ScalarKind::Index && as_signed(*s_.cb) == std::numeric_limits<int64_t>::min()) {
      return FoldResult::none();
    }
    return rule<"sub constant">(build(step(adding, input_.result, {s_.a, number(-s_.cb->bits)})));
  }

  FoldResult mul() {
    if (is(s_.cb, 0) || is(s_.ca, 0)) return rule<"mul zero">(zero());
    if (is(s_.cb, 1)) return rule<"mul one">(take(s_.a));
    if (is(s_.ca, 1)) return rule<"mul one">(take(s_.b));
    if (input_.kind == IndexMul || !s_.cb || flagged_ || kind_ == ScalarKind::I1) {
      return FoldResult::none();
    }
    if (is_ones(s_.cb)) {
      return rule<"mul minus one">(build(step(ScalarNegI, input_.result, {s_.a})));
    }
    if (std::has_single_bit(s_.cb->bits)) {
      const auto shift = static_cast<uint64_t>(std::countr_zero(s_.cb->bits));
      return rule<"mul power of two">(
          build(step(ScalarShlI, input_.result, {s_.a, number(shift)})));
    }
    // A multiply distributes over a constant sum that nothing else uses.
    const auto inner = split(s_.a, ScalarAddI);
    if (!inner || !rewriter_.single_use(s_.a)) return FoldResult::none();
    return rule<"mul constant sum">(build(
        step(ScalarMulI, input_.result, {inner->value, s_.b}),
        step(ScalarAddI, input_.result, {Ref(), number(inner->constant.bits * s_.cb->bits)})));
  }

  FoldResult madd() {
    const Ref c = input_.operands[2];
    if (is(s_.ca, 0) || is(s_.cb, 0)) return rule<"madd zero factor">(take(c));
    if (is(s_.cb, 1) || is(s_.ca, 1)) {
      const Ref other = is(s_.cb, 1) ? s_.a : s_.b;
      return rule<"madd one">(build(step(IndexAdd, input_.result, {c, other})));
    }
    if (is(rewriter_.exact(c), 0)) {
      return rule<"madd zero addend">(build(step(IndexMul, input_.result, {s_.a, s_.b})));
    }
    if (s_.ca && s_.cb) {
      int64_t product = 0;
      if (!__builtin_mul_overflow(as_signed(*s_.ca), as_signed(*s_.cb), &product)) {
        return rule<"madd constant product">(
            build(step(IndexAdd, input_.result, {c, number(static_cast<uint64_t>(product))})));
      }
    }
    return FoldResult::none();
  }

  FoldResult scale() {
    if (is(s_.ca, 0) || is(s_.cb, 0)) return rule<"scale zero">(zero());
    if (is(s_.ca, 1)) return rule<"scale one">(take(s_.b));
    return FoldResult::none();
  }

  bool is_unsigned_division() const {
    return input_.kind == ScalarDivUI || input_.kind == ScalarRemUI;
  }

  FoldResult div() {
    if (is(s_.cb, 1) && kind_ != ScalarKind::I1) return rule<"div by one">(take(s_.a));
    const bool non_zero = facts_may_replace(rewriter_, input_);
    if (is(s_.ca, 0) && non_zero) return rule<"div of zero">(zero());
    if (kind_ == ScalarKind::I1) return FoldResult::none();
    if (s_.same() && non_zero) return rule<"div by itself">(take(number(1)));
    if (input_.kind == ScalarDivSI && is_ones(s_.cb)) {
      return rule<"div by minus one">(build(step(ScalarNegI, input_.result, {s_.a})));
    }
    if (is_unsigned_division() && s_.cb && std::has_single_bit(s_.cb->bits)) {
      const auto shift = static_cast<uint64_t>(std::countr_zero(s_.cb->bits));
      return rule<"div by a power of two">(
          build(step(ScalarShrUI, input_.result, {s_.a, number(shift)})));
    }
    return FoldResult::none();
  }

  FoldResult rem() {
    const bool non_zero = facts_may_replace(rewriter_, input_);
    if (is(s_.cb, 1) && (input_.kind != IndexRem || non_zero)) return rule<"rem by one">(zero());
    if (is(s_.ca, 0) && non_zero) return rule<"rem of zero">(zero());
    if (s_.same() && non_zero) return rule<"rem by itself">(zero());
    if (kind_ == ScalarKind::I1) return FoldResult::none();
    if (is_unsigned_division() && s_.cb && std::has_single_bit(s_.cb->bits)) {
      return rule<"rem by a power of two">(
          build(step(ScalarAndI, input_.result, {s_.a, number(s_.cb->bits - 1)})));
    }
    // Already below the divisor.
    const IntFacts a = rewriter_.facts(s_.a), b = rewriter_.facts(s_.b);
    if (a.lo >= 0 && b.lo > 0 && a.hi < b.lo) return rule<"rem below the divisor">(take(s_.a));
    return FoldResult::none();
  }

  // -(-x) is x.
  FoldResult involution() {
    const OpId inner = defined_by(rewriter_, s_.a, input_.kind);
    if (!inner.valid()) return FoldResult::none();
    return rule<"neg of neg">(take(rewriter_.operand(inner, 0)));
  }

  FoldResult abs() {
    if (kind_ == ScalarKind::I1) return FoldResult::none();
    if (rewriter_.facts(s_.a).non_negative()) return rule<"abs of non-negative">(take(s_.a));
    if (!defined_by(rewriter_, s_.a, ScalarAbsI).valid()) return FoldResult::none();
    return rule<"abs of abs">(take(s_.a));
  }

  FoldResult extreme() {
    if (s_.same()) return rule<"min or max of equals">(take(s_.a));
    const bool is_unsigned = input_.kind == ScalarMinUI || input_.kind == ScalarMaxUI;
    const bool is_min =
        input_.kind == IndexMin || input_.kind == ScalarMinSI || input_.kind == ScalarMinUI;
    if (kind_ == ScalarKind::I1 && !is_unsigned) return FoldResult::none();
    const Compare relation = is_unsigned ? Compare::Ule : Compare::Sle;
    auto below = compare(relation, rewriter_.facts(s_.a), rewriter_.facts(s_.b));
    if (!below) below = rewriter_.related(relation, s_.a, s_.b);
    if (below) return rule<"min or max decided">(take(*below == is_min ? s_.a : s_.b));
    // The other way round: equal sides are in both orders, so this can decide where the first did
    // not.
    auto above = compare(relation, rewriter_.facts(s_.b), rewriter_.facts(s_.a));
    if (!above) above = rewriter_.related(relation, s_.b, s_.a);
    if (above && *above) return rule<"min or max decided by equality">(take(is_min ? s_.b : s_.a));
    return extreme_value(is_min, is_unsigned);
  }

  // The type's own extreme value.
  FoldResult extreme_value(bool is_min, bool is_unsigned) {
    if (!s_.cb) return FoldResult::none();
    const uint64_t mask = scalar_mask(kind_);
    const uint64_t lowest = is_unsigned ? 0 : (mask >> 1) + 1;
    const uint64_t highest = is_unsigned ? mask : mask >> 1;
    if (s_.cb->bits == lowest) {
      return rule<"min or max with the lowest">(take(is_min ? s_.b : s_.a));
    }
    if (s_.cb->bits == highest) {
      return rule<"min or max with the highest">(take(is_min ? s_.a : s_.b));
    }
    return FoldResult::none();
  }

  FoldResult bitwise() {
    switch (input_.kind) {
      case IndexAnd:
      case ScalarAndI:
        if (is(s_.cb, 0) || is(s_.ca, 0)) return rule<"and zero">(zero());
        if (s_.same()) return rule<"and itself">(take(s_.a));
        if (is_ones(s_.cb)) return rule<"and ones">(take(s_.a));
        if (is_ones(s_.ca)) return rule<"and ones">(take(s_.b));
        return FoldResult::none();
      case IndexOr:
      case ScalarOrI:
        if (s_.same()) return rule<"or itself">(take(s_.a));
        if (is(s_.cb, 0)) return rule<"or zero">(take(s_.a));
        if (is(s_.ca, 0)) return rule<"or zero">(take(s_.b));
        if (is_ones(s_.cb)) return rule<"or ones">(take(s_.b));
        if (is_ones(s_.ca)) return rule<"or ones">(take(s_.a));
        return FoldResult::none();
      case IndexXor:
      case ScalarXorI:
        if (is(s_.cb, 0)) return rule<"xor zero">(take(s_.a));
        if (is(s_.ca, 0)) return rule<"xor zero">(take(s_.b));
        if (s_.same()) return rule<"xor itself">(zero());
        return FoldResult::none();
      case IndexShl:
      case IndexShrS:
      case IndexShrU:
      case ScalarShlI:
      case ScalarShrSI:
      case ScalarShrUI:
        if (!is(s_.cb, 0)) return FoldResult::none();
        return rule<"shift by zero">(take(s_.a));
      default:
        return FoldResult::none();
    }
  }

  Rewriter& rewriter_;
  const FoldInput& input_;
  const ScalarKind kind_;
  const bool flagged_;
  Sides s_;
};

}  // namespace

FoldResult fold_integer(Rewriter& rewriter, const FoldInput& input) {
  return IntegerFolder(rewriter, input).run();
}

}  // namespace loom::detail
