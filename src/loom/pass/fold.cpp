#include "loom/pass/fold.h"

#include <array>

#include "loom/pass/fold_util.h"

namespace loom {
namespace {

using enum OpKind;
using detail::build;
using detail::step;

bool computes_scalar(OpKind kind) {
  const OpInfo& info = op_info(kind);
  if (info.effect != Effect::Pure || info.results.size() != 1 || info.operands.empty())
    return false;
  if (info.has_groups) return false;
  return info.dialect == "index" || info.dialect == "scalar";
}

bool computes_with_poison(OpKind kind) {
  const OpInfo& info = op_info(kind);
  if (info.effect != Effect::Pure || info.operands.empty() || info.results.empty()) return false;
  // Each result of an assume operation is its own operand.
  if (info.has(trait::Terminator) || kind == IndexAssume || kind == ScalarAssume) return false;
  return info.dialect == "index" || info.dialect == "scalar" || info.dialect == "vector";
}

struct KindTables {
  std::array<bool, kOpKindCount> poison{};
  std::array<bool, kOpKindCount> foldable{};
  std::array<bool, kOpKindCount> scalar{};
  std::array<bool, kOpKindCount> vector{};
  std::array<bool, kOpKindCount> commutative{};
  KindTables() {
    for (size_t i = 0; i < kOpKindCount; ++i) {
      const auto kind = static_cast<OpKind>(i);
      scalar[i] = computes_scalar(kind);
      vector[i] = detail::is_foldable_vector(kind);
      poison[i] = computes_with_poison(kind);
      const auto results = op_info(kind).results;
      const bool one = results.size() == 1 && results[0].arity == Arity::Single;
      foldable[i] = scalar[i] || vector[i] || (poison[i] && one) || kind == ScfSelect ||
                    kind == ViewRefine || kind == BufferLength;
      commutative[i] = op_info(kind).has(trait::Commutative);
    }
  }
};
const KindTables& tables() {
  static const KindTables instance;
  return instance;
}

// A NaN or an offset that no literal spells (both come from bitcasts) stays an operation.
bool has_literal(const ScalarValue& value) {
  const bool always = is_float(value.kind) ? !is_nan(value) : value.kind != ScalarKind::Offset;
  if (always) return true;
  return from_literal(to_literal(value), value.kind) == value;
}

// Evaluates when every operand is exact. Sets `violation` when the program has no result here.
Ref evaluate_exact(Rewriter& rewriter, const FoldInput& input, bool& violation) {
  ScalarValue values[3];
  if (input.operands.size() > 3) return Ref();
  for (size_t i = 0; i < input.operands.size(); ++i) {
    const auto value = rewriter.exact(input.operands[i]);
    if (!value) return Ref();
    values[i] = *value;
  }
  ScalarValue result;
  const EvalStatus status = evaluate(input.kind, input.attrs, {values, input.operands.size()},
                                     rewriter.element(input.result), result);
  violation = status == EvalStatus::ContractViolation;
  if (status != EvalStatus::Ok || !has_literal(result)) return Ref();
  note_fold<"constants">();
  return rewriter.constant(result);
}

FoldResult fold_select(Rewriter& rewriter, const FoldInput& input) {
  const Ref cond = input.operands[0], a = input.operands[1], b = input.operands[2];
  if (const auto value = rewriter.exact(cond)) {
    return rule<"select decided">(FoldResult::of(value->bits != 0 ? a : b));
  }
  if (a == b) return rule<"select equals">(FoldResult::of(a));
  if (rewriter.module().types.is(input.result, ScalarKind::I1)) {
    const auto x = rewriter.exact(a), y = rewriter.exact(b);
    if (x && y && x->bits == 1 && y->bits == 0) {
      return rule<"select of the condition">(FoldResult::of(cond));
    }
  }
  return FoldResult::none();
}

bool decides_equal(Compare compare) {
  switch (compare) {
    case Compare::Eq:
    case Compare::Sle:
    case Compare::Sge:
    case Compare::Ule:
    case Compare::Uge:
      return true;
    default:
      return false;
  }
}

FoldResult fold_compare(Rewriter& rewriter, const FoldInput& input) {
  const auto relation = static_cast<Compare>(input.attrs.choice);
  const Ref a = input.operands[0], b = input.operands[1];
  std::optional<bool> outcome;
  if (a == b) {
    outcome = decides_equal(relation);
    note_fold<"compare equals">();
  } else if (rewriter.element_of(a) != ScalarKind::I1 || relation < Compare::Slt ||
             relation > Compare::Sge) {
    // Facts read i1 as unsigned, so they do not decide its signed order.
    outcome = compare(relation, rewriter.facts(a), rewriter.facts(b));
    if (outcome) note_fold<"compare by facts">();
    if (!outcome && (outcome = rewriter.related(relation, a, b))) {
      note_fold<"compare by relations">();
    }
  }
  if (!outcome) return FoldResult::none();
  return FoldResult::of(rewriter.integer(ScalarKind::I1, *outcome ? 1 : 0));
}

// A test of a float whose facts decide it.
FoldResult fold_float_test(Rewriter& rewriter, const FoldInput& input) {
  PredicateKind kind = PredicateKind::Finite;
  if (input.kind == ScalarIsNanF) kind = PredicateKind::NotNan;
  if (input.kind == ScalarIsInfF) kind = PredicateKind::NotInf;
  const auto known = holds(kind, rewriter.float_facts(input.operands[0]));
  if (!known) return FoldResult::none();
  const bool outcome = *known == (kind == PredicateKind::Finite);
  return rule<"float test by facts">(
      FoldResult::of(rewriter.integer(ScalarKind::I1, outcome ? 1 : 0)));
}

bool is_integer_like(ScalarKind kind) { return !is_float(kind); }

}  // namespace

bool is_foldable(OpKind kind) { return tables().foldable[static_cast<size_t>(kind)]; }

FoldResult fold(Rewriter& rewriter, const FoldInput& input) {
  switch (input.kind) {
    case ScfSelect:
      return fold_select(rewriter, input);
    case ViewRefine:
      // An identity once both sides have become the same type.
      if (rewriter.type_of(input.operands[0]) != input.result) return FoldResult::none();
      return rule<"refine to the same">(FoldResult::of(input.operands[0]));
    case BufferLength: {
      const auto bytes = result_facts(rewriter, input).exact();
      if (!bytes) return FoldResult::none();
      return rule<"known length">(FoldResult::of(rewriter.integer(ScalarKind::Offset, *bytes)));
    }
    default:
      break;
  }
  const auto number = static_cast<size_t>(input.kind);
  if (tables().poison[number]) {
    for (const Ref operand : input.operands) {
      if (!detail::is_poison(rewriter, operand)) continue;
      return rule<"poison">(build(detail::poison_of(rewriter, input.result)));
    }
  }
  if (tables().vector[number]) return detail::fold_vector(rewriter, input);
  if (!tables().scalar[number]) return FoldResult::none();
  bool violation = false;
  if (const Ref value = evaluate_exact(rewriter, input, violation); value.valid()) {
    return FoldResult::of(value);
  }
  if (violation) return FoldResult::none();
  if (input.kind == IndexCmp || input.kind == ScalarCmpI) return fold_compare(rewriter, input);

  if (input.kind == ScalarIsNanF || input.kind == ScalarIsInfF || input.kind == ScalarIsFiniteF) {
    return fold_float_test(rewriter, input);
  }

  FoldResult result = detail::fold_conversion(rewriter, input);
  if (result.folded()) return result;
  const ScalarKind kind = rewriter.element_of(input.operands[0]);
  result =
      is_float(kind) ? detail::fold_float(rewriter, input) : detail::fold_integer(rewriter, input);
  if (result.folded()) return result;

  if (is_integer_like(rewriter.element(input.result)) && is_integer_like(kind)) {
    const IntFacts facts = result_facts(rewriter, input);
    if (facts.exact() && facts_may_replace(rewriter, input)) {
      return rule<"exact by facts">(
          FoldResult::of(rewriter.integer(rewriter.element(input.result), facts.lo)));
    }
  }
  // Constants stand on the right. Addresses and integers only: the payload of a NaN may depend on
  // the order of float operands.
  if (tables().commutative[number] && is_integer_like(kind) && rewriter.exact(input.operands[0]) &&
      !rewriter.exact(input.operands[1])) {
    return rule<"constant to the right">(build(
        step(input.kind, input.result, {input.operands[1], input.operands[0]}, input.attrs.flags)));
  }
  return FoldResult::none();
}

namespace detail {

bool carries_poison(OpKind kind) { return tables().poison[static_cast<size_t>(kind)]; }

FoldStep poison_of(Rewriter& rewriter, TypeId type) {
  const Type& shape = rewriter.module().types[type];
  if (shape.is_scalar()) return step(ScalarPoison, type, {});
  for (const Dim dim : shape.dims) {
    if (!dim.is_dynamic() && dim.extent() == 0) return step(VectorEmpty, type, {});
  }
  return step(VectorPoison, type, {});
}

FoldResult fold_conversion(Rewriter& rewriter, const FoldInput& input) {
  const Ref a = input.operands[0];
  const OpId inner = rewriter.defining(a);
  switch (input.kind) {
    case IndexCast:
    case ScalarBitcast:
    case ScalarTruncI: {
      if (rewriter.type_of(a) == input.result) return rule<"cast to the same">(FoldResult::of(a));
      if (!inner.valid()) return FoldResult::none();
      const OpKind kind = rewriter.kind_of(inner);
      const bool inverse = input.kind == ScalarTruncI ? kind == ScalarExtSI || kind == ScalarExtUI
                                                      : kind == input.kind;
      if (!inverse) return FoldResult::none();
      const Ref source = rewriter.operand(inner, 0);
      if (rewriter.type_of(source) != input.result) return FoldResult::none();
      if (input.kind != IndexCast) return rule<"cast there and back">(FoldResult::of(source));
      // Back to where it came from: exact when the middle type could hold the value.
      const IntFacts facts = rewriter.facts(source);
      const IntDomain middle = IntDomain::of(rewriter.element_of(a));
      const bool widened = is_address(rewriter.element_of(a));
      const bool fits = facts.lo >= middle.lo && facts.hi <= middle.hi;
      if (!widened && !fits) return FoldResult::none();
      return rule<"index cast there and back">(FoldResult::of(source));
    }
    default:
      return FoldResult::none();
  }
}

}  // namespace detail
}  // namespace loom
