#include "loom/pass/op_facts.h"

#include "loom/pass/rewriter.h"
#include "loom/pass/storage_facts.h"

namespace loom {
namespace {

using enum OpKind;

IntDomain domain_of(const Rewriter& rewriter, Ref ref) {
  return IntDomain::of(rewriter.element_of(ref));
}

IntFacts cast_facts(const Rewriter& rewriter, const FoldInput& input, const IntDomain& to) {
  const IntFacts a = rewriter.facts(input.operands[0]);
  const ScalarKind from = rewriter.element_of(input.operands[0]);
  const ScalarKind target = rewriter.element(input.result);
  if (from == ScalarKind::I1) return a;
  if (!is_address(target)) return facts::truncate(a, to);
  // A narrow payload zero-extends to offset; every other value must be representable.
  if (target == ScalarKind::Offset && is_integer(from) && from != ScalarKind::I64) {
    return facts::zero_extend(a, IntDomain::of(from));
  }
  const IntFacts result = meet(a, IntFacts::of(to));
  return result.empty() ? IntFacts::of(to) : result;
}

IntFacts binary_facts(OpKind kind, const IntFacts& a, const IntFacts& b, const IntDomain& domain) {
  switch (kind) {
    case IndexAdd:
    case ScalarAddI:
      return facts::add(a, b, domain);
    case IndexSub:
    case ScalarSubI:
      return facts::sub(a, b, domain);
    case IndexMul:
    case IndexScale:
    case ScalarMulI:
      return facts::mul(a, b, domain);
    case IndexDiv:
      return facts::div(a, b);
    case IndexRem:
      return facts::rem(a, b);
    case ScalarDivSI:
      return facts::div_signed(a, b, domain);
    case ScalarRemSI:
      return facts::rem_signed(a, b, domain);
    case ScalarDivUI:
      return facts::div_unsigned(a, b, domain);
    case ScalarRemUI:
      return facts::rem_unsigned(a, b, domain);
    case IndexMin:
    case ScalarMinSI:
      return facts::min_signed(a, b);
    case IndexMax:
    case ScalarMaxSI:
      return facts::max_signed(a, b);
    case ScalarMinUI:
      return facts::min_unsigned(a, b);
    case ScalarMaxUI:
      return facts::max_unsigned(a, b);
    case IndexAnd:
    case ScalarAndI:
      return facts::bit_and(a, b, domain);
    case IndexOr:
    case ScalarOrI:
      return facts::bit_or(a, b, domain);
    case IndexXor:
    case ScalarXorI:
      return facts::bit_xor(a, b, domain);
    case ScalarCeilDivSI:
      return facts::ceil_div_signed(a, b, domain);
    case ScalarCeilDivUI:
      return facts::ceil_div_unsigned(a, b, domain);
    case ScalarFloorDivSI:
      return facts::floor_div_signed(a, b, domain);
    case IndexRotL:
    case IndexRotR:
    case ScalarRotLI:
    case ScalarRotRI:
      return facts::rotate(a, domain);
    case IndexShl:
    case ScalarShlI:
      return facts::shift_left(a, b, domain);
    case IndexShrS:
    case ScalarShrSI:
      return facts::shift_right_signed(a, b, domain);
    case IndexShrU:
    case ScalarShrUI:
      return facts::shift_right_unsigned(a, b, domain);
    default:
      return IntFacts::of(domain);
  }
}

// Signed operations read a set i1 as -1, facts as 1: they say nothing about each other.
bool reads_i1_as_signed(const Rewriter& rewriter, const FoldInput& input) {
  if (input.operands.empty() || rewriter.element_of(input.operands.back()) != ScalarKind::I1) {
    return false;
  }
  switch (input.kind) {
    case ScalarMinSI:
    case ScalarMaxSI:
    case ScalarDivSI:
    case ScalarRemSI:
    case ScalarAbsI:
    case ScalarShrSI:
      return true;
    default:
      return false;
  }
}

}  // namespace

IntFacts result_facts(const Rewriter& rewriter, const FoldInput& input) {
  const IntDomain domain = IntDomain::of(rewriter.element(input.result));
  if (reads_i1_as_signed(rewriter, input)) return IntFacts::of(domain);
  const auto operand = [&](size_t i) { return rewriter.facts(input.operands[i]); };
  switch (input.kind) {
    case IndexMadd:
      return facts::add(facts::mul(operand(0), operand(1), domain), operand(2), domain);
    case BufferLength: {
      const Ref& root = input.operands[0];
      if (root.is_constant()) return IntFacts::of(domain);
      return meet(storage_facts(rewriter, root.value_id(), true).root_bytes, IntFacts::of(domain));
    }
    case IndexCast:
      return cast_facts(rewriter, input, domain);
    case ScalarFmaI:
      return facts::add(facts::mul(operand(0), operand(1), domain), operand(2), domain);
    case IndexCtlz:
    case ScalarCtlzI:
      return facts::leading_zeros(operand(0), domain);
    case IndexCttz:
    case ScalarCttzI:
      return facts::trailing_zeros(operand(0), domain);
    case IndexCtpop:
    case ScalarCtpopI:
      return facts::population(operand(0), domain);
    case ScalarSignI:
      return facts::sign(operand(0), domain);
    case ScalarNegI:
      return facts::neg(operand(0), domain);
    case ScalarAbsI:
      return facts::abs(operand(0), domain);
    case ScalarExtSI:
      return facts::sign_extend(operand(0), domain_of(rewriter, input.operands[0]));
    case ScalarExtUI:
      return facts::zero_extend(operand(0), domain_of(rewriter, input.operands[0]));
    case ScalarTruncI:
      return facts::truncate(operand(0), domain);
    case ScfSelect:
      return join(operand(1), operand(2));
    default:
      break;
  }
  if (input.operands.size() != 2) return IntFacts::of(domain);
  return binary_facts(input.kind, operand(0), operand(1), domain);
}

FloatFacts float_result_facts(OpKind kind, std::span<const FloatFacts> operands,
                              ScalarKind result) {
  const auto of = [&](size_t i) { return operands[i]; };
  switch (kind) {
    case ScalarAddF:
      return facts::add(of(0), of(1), result);
    case ScalarSubF:
      return facts::sub(of(0), of(1), result);
    case ScalarMulF:
      return facts::mul(of(0), of(1), result);
    case ScalarDivF:
      return facts::div(of(0), of(1), result);
    case ScalarFmaF:
      return facts::fma(of(0), of(1), of(2), result);
    case ScalarMinimumF:
    case ScalarMaximumF:
      return facts::either(of(0), of(1));
    case ScalarMinNumF:
    case ScalarMaxNumF:
      return facts::either_number(of(0), of(1));
    case ScalarClampF:
      return join(of(0), join(of(1), of(2)));
    case ScalarNegF:
      return facts::neg(of(0));
    case ScalarAbsF:
      return facts::abs(of(0));
    case ScalarSqrtF:
      return facts::sqrt(of(0));
    case ScalarExpF:
    case ScalarExp2F:
      return facts::exp(of(0), result);
    case ScalarExtF:
    case ScalarFPTrunc:
      return facts::convert(of(0), result);
    case ScalarSIToFP:
      return facts::from_integer(of(0).may(FloatFacts::kMinus), result);
    case ScalarUIToFP:
      return facts::from_integer(false, result);
    case ScfSelect:
      return join(of(1), of(2));
    default:
      return FloatFacts::of(result);
  }
}

bool facts_may_replace(const Rewriter& rewriter, const FoldInput& input) {
  switch (input.kind) {
    case IndexDiv:
    case IndexRem:
      return rewriter.facts(input.operands[0]).non_negative() &&
             rewriter.facts(input.operands[1]).positive();
    case ScalarDivSI:
    case ScalarRemSI:
    case ScalarDivUI:
    case ScalarRemUI:
    case ScalarCeilDivSI:
    case ScalarCeilDivUI:
    case ScalarFloorDivSI:
      return rewriter.facts(input.operands[1]).non_zero;
    default:
      return true;
  }
}

}  // namespace loom
