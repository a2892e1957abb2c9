#include "loom/target/llvm/integer_ops.h"

#include <llvm/ADT/APInt.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Intrinsics.h>

#include "loom/base/check.h"
#include "loom/target/llvm/lanes.h"

namespace loom {
namespace {

using enum OpKind;

llvm::CmpInst::Predicate predicate_of(CmpIPredicate predicate) {
  using enum CmpIPredicate;
  switch (predicate) {
    case Eq:
      return llvm::CmpInst::ICMP_EQ;
    case Ne:
      return llvm::CmpInst::ICMP_NE;
    case Slt:
      return llvm::CmpInst::ICMP_SLT;
    case Sle:
      return llvm::CmpInst::ICMP_SLE;
    case Sgt:
      return llvm::CmpInst::ICMP_SGT;
    case Sge:
      return llvm::CmpInst::ICMP_SGE;
    case Ult:
      return llvm::CmpInst::ICMP_ULT;
    case Ule:
      return llvm::CmpInst::ICMP_ULE;
    case Ugt:
      return llvm::CmpInst::ICMP_UGT;
    case Uge:
      return llvm::CmpInst::ICMP_UGE;
  }
  return llvm::CmpInst::ICMP_EQ;
}

// The type `to` with as many lanes as the value has.
llvm::Type* shaped_like(llvm::IRBuilderBase& b, llvm::Value* value, ScalarKind to) {
  llvm::Type* const scalar = llvm_type(b.getContext(), to);
  const auto* const vector = llvm::dyn_cast<llvm::FixedVectorType>(value->getType());
  return vector == nullptr ? scalar : llvm::FixedVectorType::get(scalar, vector->getNumElements());
}

llvm::Value* emit_cast(llvm::IRBuilderBase& b, OpKind op, llvm::Value* a, ScalarKind from,
                       ScalarKind to) {
  llvm::Type* const type = shaped_like(b, a, to);
  switch (op) {
    case ScalarExtSI:
      return b.CreateSExt(a, type);
    case ScalarExtUI:
      return b.CreateZExt(a, type);
    case ScalarTruncI:
      return b.CreateTrunc(a, type);
    case ScalarBitcast:
      return b.CreateBitCast(a, type);
    default:
      break;
  }
  LOOM_CHECK(op == IndexCast, "not an integer conversion");
  // A payload enters index as a signed number, except that i1 is 0 or 1.
  const bool extends_sign = to == ScalarKind::Index && from != ScalarKind::I1;
  return extends_sign ? b.CreateSExtOrTrunc(a, type) : b.CreateZExtOrTrunc(a, type);
}

llvm::Value* emit_unary(llvm::IRBuilderBase& b, OpKind op, llvm::Value* a, ScalarKind from,
                        ScalarKind to) {
  switch (op) {
    case ScalarNegI:
      return b.CreateNeg(a);
    case ScalarAbsI:
      return b.CreateBinaryIntrinsic(llvm::Intrinsic::abs, a, b.getFalse());
    case ScalarCtlzI:
    case IndexCtlz:
      return b.CreateBinaryIntrinsic(llvm::Intrinsic::ctlz, a, b.getFalse());
    case ScalarCttzI:
    case IndexCttz:
      return b.CreateBinaryIntrinsic(llvm::Intrinsic::cttz, a, b.getFalse());
    case ScalarCtpopI:
    case IndexCtpop:
      return b.CreateUnaryIntrinsic(llvm::Intrinsic::ctpop, a);
    case ScalarSignI: {
      llvm::Value* const zero = llvm::ConstantInt::get(a->getType(), 0);
      return b.CreateSub(b.CreateZExt(b.CreateICmpSGT(a, zero), a->getType()),
                         b.CreateZExt(b.CreateICmpSLT(a, zero), a->getType()));
    }
    default:
      return emit_cast(b, op, a, from, to);
  }
}

// A division without a defined result gives some number: the processor's trap, or what LLVM infers
// from one that cannot be, would take the whole process along.
llvm::Value* divisor(llvm::IRBuilderBase& b, llvm::Value* x, llvm::Value* y, bool is_signed) {
  llvm::Type* const type = y->getType();
  llvm::Value* undefined = b.CreateIsNull(y);
  if (is_signed) {
    llvm::Value* const least =
        llvm::ConstantInt::get(type, llvm::APInt::getSignedMinValue(type->getScalarSizeInBits()));
    llvm::Value* const minus_one = llvm::ConstantInt::getAllOnesValue(type);
    llvm::Value* const overflows =
        b.CreateAnd(b.CreateICmpEQ(y, minus_one), b.CreateICmpEQ(x, least));
    undefined = b.CreateOr(undefined, overflows);
  }
  return b.CreateSelect(undefined, llvm::ConstantInt::get(type, 1), y);
}

// The quotient rounded up or down where it is not exact.
llvm::Value* divide_rounded(llvm::IRBuilderBase& b, OpKind op, llvm::Value* x, llvm::Value* y) {
  const bool is_signed = op != ScalarCeilDivUI;
  llvm::Value* const by = divisor(b, x, y, is_signed);
  llvm::Value* const quotient = is_signed ? b.CreateSDiv(x, by) : b.CreateUDiv(x, by);
  llvm::Value* const rest = is_signed ? b.CreateSRem(x, by) : b.CreateURem(x, by);
  llvm::Value* moves = b.CreateIsNotNull(rest);
  if (is_signed) {
    llvm::Value* const negative =
        b.CreateICmpSLT(b.CreateXor(x, by), llvm::ConstantInt::get(x->getType(), 0));
    moves = b.CreateAnd(moves, op == ScalarCeilDivSI ? b.CreateNot(negative) : negative);
  }
  llvm::Value* const one = b.CreateZExt(moves, x->getType());
  return op == ScalarFloorDivSI ? b.CreateSub(quotient, one) : b.CreateAdd(quotient, one);
}

llvm::Value* extract_field(llvm::IRBuilderBase& b, const EvalAttrs& attrs, llvm::Value* x,
                           bool is_signed, ScalarKind to) {
  const unsigned bits = x->getType()->getScalarSizeInBits();
  llvm::Value* const high = b.CreateShl(x, bits - attrs.offset - attrs.width);
  llvm::Type* const type = shaped_like(b, x, to);
  return is_signed ? b.CreateSExtOrTrunc(b.CreateAShr(high, bits - attrs.width), type)
                   : b.CreateZExtOrTrunc(b.CreateLShr(high, bits - attrs.width), type);
}

}  // namespace

llvm::Value* emit_integer_op(llvm::IRBuilderBase& builder, OpKind op, const EvalAttrs& attrs,
                             std::span<llvm::Value* const> operands, ScalarKind from,
                             ScalarKind to) {
  auto& b = builder;
  llvm::Value* const one_lane = compute_one_lane(b, operands, [&](auto elements) {
    return emit_integer_op(b, op, attrs, elements, from, to);
  });
  if (one_lane != nullptr) return one_lane;
  llvm::Value* const x = operands[0];
  if (op == ScalarBitfieldExtractU || op == ScalarBitfieldExtractS) {
    return extract_field(b, attrs, x, op == ScalarBitfieldExtractS, to);
  }
  if (operands.size() == 1) return emit_unary(b, op, x, from, to);
  llvm::Value* const y = operands[1];
  const bool nuw = (attrs.flags & kNuw) != 0;
  const bool nsw = (attrs.flags & kNsw) != 0;
  switch (op) {
    case IndexCmp:
    case ScalarCmpI:
      return b.CreateICmp(predicate_of(static_cast<CmpIPredicate>(attrs.choice)), x, y);
    case IndexAdd:
      return b.CreateAdd(x, y);
    case ScalarAddI:
      return b.CreateAdd(x, y, "", nuw, nsw);
    case IndexSub:
      return b.CreateSub(x, y);
    case ScalarSubI:
      return b.CreateSub(x, y, "", nuw, nsw);
    case IndexMul:
    case IndexScale:
      return b.CreateMul(x, y);
    case ScalarMulI:
      return b.CreateMul(x, y, "", nuw, nsw);
    case IndexMadd:
      return b.CreateAdd(b.CreateMul(x, y), operands[2]);
    case IndexDiv:  // the dividend is not negative and the divisor is positive
    case ScalarDivUI:
      return b.CreateUDiv(x, divisor(b, x, y, false));
    case IndexRem:
    case ScalarRemUI:
      return b.CreateURem(x, divisor(b, x, y, false));
    case ScalarDivSI:
      return b.CreateSDiv(x, divisor(b, x, y, true));
    case ScalarRemSI:
      return b.CreateSRem(x, divisor(b, x, y, true));
    case ScalarCeilDivSI:
    case ScalarCeilDivUI:
    case ScalarFloorDivSI:
      return divide_rounded(b, op, x, y);
    case ScalarFmaI:  // nsw is about the exact sum alone
      return b.CreateAdd(b.CreateMul(x, y, "", nuw), operands[2], "", nuw);
    case ScalarRotLI:
    case IndexRotL:
      return b.CreateIntrinsic(llvm::Intrinsic::fshl, {x->getType()}, {x, x, y});
    case ScalarRotRI:
    case IndexRotR:
      return b.CreateIntrinsic(llvm::Intrinsic::fshr, {x->getType()}, {x, x, y});
    case IndexMin:
    case ScalarMinSI:
      return b.CreateBinaryIntrinsic(llvm::Intrinsic::smin, x, y);
    case IndexMax:
    case ScalarMaxSI:
      return b.CreateBinaryIntrinsic(llvm::Intrinsic::smax, x, y);
    case ScalarMinUI:
      return b.CreateBinaryIntrinsic(llvm::Intrinsic::umin, x, y);
    case ScalarMaxUI:
      return b.CreateBinaryIntrinsic(llvm::Intrinsic::umax, x, y);
    case IndexAnd:
    case ScalarAndI:
      return b.CreateAnd(x, y);
    case IndexOr:
    case ScalarOrI:
      return b.CreateOr(x, y);
    case IndexXor:
    case ScalarXorI:
      return b.CreateXor(x, y);
    case IndexShl:
      return b.CreateShl(x, y);
    case ScalarShlI:
      return b.CreateShl(x, y, "", nuw, nsw);
    case IndexShrS:
    case ScalarShrSI:
      return b.CreateAShr(x, y);
    case IndexShrU:
    case ScalarShrUI:
      return b.CreateLShr(x, y);
    default:
      LOOM_CHECK(false, "not an integer operation");
      return x;
  }
}

}  // namespace loom
