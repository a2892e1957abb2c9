#include "loom/target/llvm/float_ops.h"

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/Module.h>

#include "loom/base/check.h"
#include "loom/target/llvm/lanes.h"

namespace loom {
namespace {

using enum OpKind;
using llvm::Intrinsic::ID;

// The narrow formats.
struct Layout {
  unsigned exponent_bits;
  unsigned mantissa_bits;
  bool has_infinity;

  unsigned bias() const { return (1u << (exponent_bits - 1)) - 1; }
  unsigned magnitude_bits() const { return exponent_bits + mantissa_bits; }
  unsigned shift() const { return 23 - mantissa_bits; }
  uint32_t magnitude_mask() const { return (1u << magnitude_bits()) - 1; }
  uint32_t exponent_mask() const { return magnitude_mask() & ~((1u << mantissa_bits) - 1); }
  uint32_t overflow() const { return has_infinity ? exponent_mask() : magnitude_mask() - 1; }
  uint32_t nan() const {
    return has_infinity ? exponent_mask() | (1u << (mantissa_bits - 1)) : magnitude_mask();
  }
};

Layout layout_of(ScalarKind kind) {
  switch (kind) {
    case ScalarKind::F8E4M3:
      return {4, 3, false};
    case ScalarKind::F8E5M2:
      return {5, 2, true};
    case ScalarKind::F16:
      return {5, 10, true};
    case ScalarKind::BF16:
      return {8, 7, true};
    default:
      LOOM_CHECK(false, "not a narrow format");
      return {};
  }
}

llvm::FastMathFlags fast_math(uint64_t flags) {
  llvm::FastMathFlags result;
  result.setAllowReassoc((flags & kReassoc) != 0);
  result.setNoNaNs((flags & kNnan) != 0);
  result.setNoInfs((flags & kNinf) != 0);
  result.setNoSignedZeros((flags & kNsz) != 0);
  result.setAllowReciprocal((flags & kArcp) != 0);
  result.setAllowContract((flags & kContract) != 0);
  result.setApproxFunc((flags & kAfn) != 0);
  return result;
}

// 0 when the operation is no single intrinsic.
ID intrinsic_of(OpKind op) {
  switch (op) {
    case ScalarExpF:
      return llvm::Intrinsic::exp;
    case ScalarExp2F:
      return llvm::Intrinsic::exp2;
    case ScalarLogF:
      return llvm::Intrinsic::log;
    case ScalarLog2F:
      return llvm::Intrinsic::log2;
    case ScalarSqrtF:
      return llvm::Intrinsic::sqrt;
    case ScalarSinF:
      return llvm::Intrinsic::sin;
    case ScalarCosF:
      return llvm::Intrinsic::cos;
    case ScalarCeilF:
      return llvm::Intrinsic::ceil;
    case ScalarFloorF:
      return llvm::Intrinsic::floor;
    case ScalarTruncF:
      return llvm::Intrinsic::trunc;
    case ScalarRoundF:
      return llvm::Intrinsic::round;
    case ScalarRoundEvenF:
      return llvm::Intrinsic::roundeven;
    default:
      return llvm::Intrinsic::not_intrinsic;
  }
}

llvm::CmpInst::Predicate predicate_of(CmpFPredicate predicate) {
  using enum CmpFPredicate;
  switch (predicate) {
    case Oeq:
      return llvm::CmpInst::FCMP_OEQ;
    case Ogt:
      return llvm::CmpInst::FCMP_OGT;
    case Oge:
      return llvm::CmpInst::FCMP_OGE;
    case Olt:
      return llvm::CmpInst::FCMP_OLT;
    case Ole:
      return llvm::CmpInst::FCMP_OLE;
    case One:
      return llvm::CmpInst::FCMP_ONE;
    case Ord:
      return llvm::CmpInst::FCMP_ORD;
    case Ueq:
      return llvm::CmpInst::FCMP_UEQ;
    case Ugt:
      return llvm::CmpInst::FCMP_UGT;
    case Uge:
      return llvm::CmpInst::FCMP_UGE;
    case Ult:
      return llvm::CmpInst::FCMP_ULT;
    case Ule:
      return llvm::CmpInst::FCMP_ULE;
    case Une:
      return llvm::CmpInst::FCMP_UNE;
    case Uno:
      return llvm::CmpInst::FCMP_UNO;
  }
  return llvm::CmpInst::FCMP_FALSE;
}

}  // namespace

llvm::Value* FloatOps::i32(uint32_t value) { return llvm::ConstantInt::get(integers(32), value); }

llvm::Type* FloatOps::shaped(llvm::Type* scalar) const {
  return lanes_ == 0 ? scalar : llvm::FixedVectorType::get(scalar, lanes_);
}
llvm::Type* FloatOps::integers(unsigned bits) const { return shaped(builder_.getIntNTy(bits)); }
llvm::Type* FloatOps::halves() const { return shaped(builder_.getHalfTy()); }
llvm::Type* FloatOps::singles() const { return shaped(builder_.getFloatTy()); }
llvm::Type* FloatOps::doubles() const { return shaped(builder_.getDoubleTy()); }

llvm::Value* FloatOps::like_bits(llvm::Value* x, uint64_t value) {
  return llvm::ConstantInt::get(x->getType(), value);
}

llvm::Value* FloatOps::like(llvm::Value* x, double value) {
  return llvm::ConstantFP::get(x->getType(), value);
}

// --- conversions --------------------------------------------------------------------------------

// To f32 exactly; f32 and f64 stay as they are.
llvm::Value* FloatOps::widen(llvm::Value* value, ScalarKind from) {
  if (!is_narrow_float(from)) return value;
  auto& b = builder_;
  if (from == ScalarKind::BF16) {
    return b.CreateBitCast(b.CreateShl(b.CreateZExt(value, integers(32)), 16), singles());
  }
  if (from == ScalarKind::F16 && converts_half_) {
    return b.CreateFPExt(b.CreateBitCast(value, halves()), singles());
  }
  const Layout f = layout_of(from);
  llvm::Value* const bits = b.CreateZExt(value, integers(32));
  llvm::Value* const magnitude = b.CreateAnd(bits, f.magnitude_mask());
  llvm::Value* const shifted = b.CreateShl(magnitude, f.shift());
  llvm::Value* result = b.CreateAdd(shifted, i32((127 - f.bias()) << 23));
  // A denormal m stands for (1 + m) - 1 at the least exponent.
  const uint32_t least = (128 - f.bias()) << 23;
  llvm::Value* const one_plus = b.CreateBitCast(b.CreateOr(shifted, least), singles());
  llvm::Value* const denormal = b.CreateFSub(one_plus, b.CreateBitCast(i32(least), singles()));
  result = b.CreateSelect(b.CreateICmpULT(magnitude, i32(1u << f.mantissa_bits)),
                          b.CreateBitCast(denormal, integers(32)), result);
  if (f.has_infinity) {
    const uint32_t top = (1u << f.exponent_bits) - 1;
    llvm::Value* const special = b.CreateAdd(shifted, i32((255 - top) << 23));
    result = b.CreateSelect(b.CreateICmpUGE(magnitude, i32(f.exponent_mask())), special, result);
  } else {
    result = b.CreateSelect(b.CreateICmpEQ(magnitude, i32(f.nan())), i32(0x7fc00000), result);
  }
  llvm::Value* const sign = b.CreateShl(b.CreateLShr(bits, f.magnitude_bits()), 31);
  return b.CreateBitCast(b.CreateOr(result, sign), singles());
}

llvm::Value* FloatOps::widen_to_double(llvm::Value* value, ScalarKind from) {
  llvm::Value* const wide = widen(value, from);
  return from == ScalarKind::F64 ? wide : builder_.CreateFPExt(wide, doubles());
}

llvm::Value* FloatOps::narrow_bf16(llvm::Value* bits) {
  auto& b = builder_;
  llvm::Value* const last = b.CreateAnd(b.CreateLShr(bits, 16), 1);
  llvm::Value* const rounded = b.CreateLShr(b.CreateAdd(b.CreateAdd(bits, i32(0x7fff)), last), 16);
  llvm::Value* const quiet = b.CreateOr(b.CreateLShr(bits, 16), 0x40);
  llvm::Value* const is_nan = b.CreateICmpUGT(b.CreateAnd(bits, 0x7fffffff), i32(0x7f800000));
  return b.CreateTrunc(b.CreateSelect(is_nan, quiet, rounded), integers(16));
}

// From f32 to a narrow format, to nearest even.
llvm::Value* FloatOps::narrow(llvm::Value* single, ScalarKind to) {
  if (!is_narrow_float(to)) return single;
  auto& b = builder_;
  if (to == ScalarKind::F16 && converts_half_) {
    return b.CreateBitCast(b.CreateFPTrunc(single, halves()), integers(16));
  }
  llvm::Value* const bits = b.CreateBitCast(single, integers(32));
  if (to == ScalarKind::BF16) return narrow_bf16(bits);
  const Layout f = layout_of(to);
  llvm::Value* const magnitude = b.CreateAnd(bits, 0x7fffffff);
  llvm::Value* const last = b.CreateAnd(b.CreateLShr(magnitude, f.shift()), 1);
  llvm::Value* const carried =
      b.CreateAdd(b.CreateAdd(magnitude, i32((1u << (f.shift() - 1)) - 1)), last);
  llvm::Value* const normal =
      b.CreateSub(b.CreateLShr(carried, f.shift()), i32((127 - f.bias()) << f.mantissa_bits));
  // Adding a number whose last bit is worth the least denormal rounds to denormals.
  llvm::Value* const anchor = i32((127 + 23 + 1 - f.bias() - f.mantissa_bits) << 23);
  llvm::Value* const sum =
      b.CreateFAdd(b.CreateBitCast(magnitude, singles()), b.CreateBitCast(anchor, singles()));
  llvm::Value* const denormal = b.CreateSub(b.CreateBitCast(sum, integers(32)), anchor);
  llvm::Value* result =
      b.CreateSelect(b.CreateICmpULT(magnitude, i32((128 - f.bias()) << 23)), denormal, normal);
  result = b.CreateSelect(b.CreateICmpUGT(result, i32(f.overflow())), i32(f.overflow()), result);
  result = b.CreateSelect(b.CreateICmpUGT(magnitude, i32(0x7f800000)), i32(f.nan()), result);
  llvm::Value* const sign = b.CreateShl(b.CreateLShr(bits, 31), f.magnitude_bits());
  return b.CreateTrunc(b.CreateOr(result, sign), shaped(llvm_type(b.getContext(), to)));
}

// From f64 with one rounding: to f32 rounded to odd first, which leaves the decision open.
llvm::Value* FloatOps::narrow_double(llvm::Value* value, ScalarKind to) {
  if (to == ScalarKind::F64) return value;
  auto& b = builder_;
  llvm::Value* const nearest = b.CreateFPTrunc(value, singles());
  if (to == ScalarKind::F32) return nearest;
  llvm::Value* const back = b.CreateFPExt(nearest, doubles());
  llvm::Value* const bits = b.CreateBitCast(nearest, integers(32));
  llvm::Value* const below = b.CreateFCmpOLT(b.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, back),
                                             b.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, value));
  llvm::Value* const odd = b.CreateAdd(bits, b.CreateSelect(below, i32(1), i32(~0u)));
  llvm::Value* const even = b.CreateIsNull(b.CreateAnd(bits, 1));
  llvm::Value* const adjust = b.CreateAnd(b.CreateFCmpONE(back, value), even);
  return narrow(b.CreateBitCast(b.CreateSelect(adjust, odd, bits), singles()), to);
}

// a + b of f64, rounded to odd. Infinities and NaNs have no error and pass through.
llvm::Value* FloatOps::sum_to_odd(llvm::Value* a, llvm::Value* b) {
  auto& build = builder_;
  llvm::Value* const sum = build.CreateFAdd(a, b);
  llvm::Value* const b_part = build.CreateFSub(sum, a);
  llvm::Value* const a_error = build.CreateFSub(a, build.CreateFSub(sum, b_part));
  llvm::Value* const error = build.CreateFAdd(a_error, build.CreateFSub(b, b_part));
  llvm::Value* const zero = like(sum, 0);
  llvm::Value* const bits = build.CreateBitCast(sum, integers(64));
  llvm::Value* const outward =
      build.CreateICmpEQ(build.CreateFCmpOGT(error, zero), build.CreateFCmpOGT(sum, zero));
  llvm::Value* const odd = build.CreateAdd(
      bits, build.CreateSelect(outward, like_bits(bits, 1), like_bits(bits, ~uint64_t{0})));
  llvm::Value* const even = build.CreateIsNull(build.CreateAnd(bits, 1));
  llvm::Value* const adjust = build.CreateAnd(build.CreateFCmpONE(error, zero), even);
  return build.CreateBitCast(build.CreateSelect(adjust, odd, bits), doubles());
}

llvm::Value* FloatOps::convert(llvm::Value* value, ScalarKind from, ScalarKind to) {
  if (from == ScalarKind::F64) return narrow_double(value, to);
  if (to == ScalarKind::F64) return widen_to_double(value, from);
  return narrow(widen(value, from), to);
}

llvm::Value* FloatOps::from_integer(llvm::Value* value, bool is_signed, ScalarKind to) {
  auto& b = builder_;
  const auto exactly = [&](llvm::Value* integer, llvm::Type* type) {
    return is_signed ? b.CreateSIToFP(integer, type) : b.CreateUIToFP(integer, type);
  };
  const unsigned bits = value->getType()->getScalarSizeInBits();
  if (!is_narrow_float(to)) return exactly(value, shaped(llvm_type(b.getContext(), to)));
  if (bits <= 16) return narrow(exactly(value, singles()), to);
  if (bits <= 32) return narrow_double(exactly(value, doubles()), to);
  // Both halves are exact in f64, their sum is not.
  llvm::Value* const high = is_signed ? b.CreateAShr(value, 32) : b.CreateLShr(value, 32);
  llvm::Value* const low = b.CreateUIToFP(b.CreateAnd(value, 0xffffffff), doubles());
  llvm::Value* const high_part = exactly(high, doubles());
  return narrow_double(sum_to_odd(b.CreateFMul(high_part, like(high_part, 4294967296.0)), low), to);
}

// --- operations ---------------------------------------------------------------------------------

llvm::Value* FloatOps::compare(CmpFPredicate predicate, llvm::Value* a, llvm::Value* b) {
  return builder_.CreateFCmp(predicate_of(predicate), a, b);
}

llvm::Value* FloatOps::sign_op(OpKind op, llvm::Value* value, ScalarKind kind) {
  auto& b = builder_;
  if (!is_narrow_float(kind)) {
    return op == ScalarNegF ? b.CreateFNeg(value)
                            : b.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, value);
  }
  const uint64_t sign = uint64_t{1} << (scalar_bits(kind) - 1);
  return op == ScalarNegF ? b.CreateXor(value, sign) : b.CreateAnd(value, sign - 1);
}

llvm::Value* FloatOps::copy_sign(llvm::Value* a, llvm::Value* b, ScalarKind kind) {
  if (!is_narrow_float(kind)) {
    return builder_.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, a, b);
  }
  const uint64_t sign = uint64_t{1} << (scalar_bits(kind) - 1);
  return builder_.CreateOr(builder_.CreateAnd(a, sign - 1), builder_.CreateAnd(b, sign));
}

llvm::Value* FloatOps::classify(OpKind op, llvm::Value* x) {
  auto& b = builder_;
  if (op == ScalarIsNanF) return b.CreateFCmpUNO(x, x);
  llvm::Value* const size = b.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, x);
  llvm::Value* const infinity = llvm::ConstantFP::getInfinity(x->getType());
  return op == ScalarIsInfF ? b.CreateFCmpOEQ(size, infinity) : b.CreateFCmpOLT(size, infinity);
}

llvm::Value* FloatOps::clamp(ClampMode mode, Values operands) {
  auto& b = builder_;
  llvm::Value* const v = operands[0];
  llvm::Value* const low = operands[1];
  llvm::Value* const high = operands[2];
  if (mode == ClampMode::Ordered) {
    llvm::Value* const raised = b.CreateSelect(b.CreateFCmpOLT(v, low), low, v);
    return b.CreateSelect(b.CreateFCmpOGT(raised, high), high, raised);
  }
  const bool ieee = mode == ClampMode::Ieee;
  llvm::Value* const first[] = {v, low};
  llvm::Value* const second[] = {basic(ieee ? ScalarMaximumF : ScalarMaxNumF, first), high};
  return basic(ieee ? ScalarMinimumF : ScalarMinNumF, second);
}

llvm::Value* FloatOps::basic(OpKind op, Values operands) {
  auto& b = builder_;
  llvm::Value* const x = operands[0];
  llvm::Value* const y = operands[1];
  switch (op) {
    case ScalarAddF:
      return b.CreateFAdd(x, y);
    case ScalarSubF:
      return b.CreateFSub(x, y);
    case ScalarMulF:
      return b.CreateFMul(x, y);
    case ScalarDivF:
      return b.CreateFDiv(x, y);
    case ScalarPowF:
      return b.CreateBinaryIntrinsic(llvm::Intrinsic::pow, x, y);
    case ScalarRemF:
      return b.CreateFRem(x, y);
    case ScalarAtan2F:
      return call_libm("atan2", operands);
    case ScalarMinimumF:
      return b.CreateMinimum(x, y);
    case ScalarMaximumF:
      return b.CreateMaximum(x, y);
    default:
      break;
  }
  // llvm.minnum leaves the order of zeros open.
  llvm::Value* const best = op == ScalarMinNumF ? b.CreateMinimum(x, y) : b.CreateMaximum(x, y);
  llvm::Value* const or_x = b.CreateSelect(b.CreateFCmpUNO(y, y), x, best);
  return b.CreateSelect(b.CreateFCmpUNO(x, x), y, or_x);
}

// Minimum and maximum of a narrow format, as numbers that order like its values.
llvm::Value* FloatOps::extreme_of_bits(OpKind op, llvm::Value* a, llvm::Value* b, ScalarKind kind) {
  auto& build = builder_;
  const Layout f = layout_of(kind);
  const auto swap_negative = [&](llvm::Value* bits) {
    llvm::Value* const negative = build.CreateAShr(bits, f.magnitude_bits());
    return build.CreateXor(bits, build.CreateAnd(negative, f.magnitude_mask()));
  };
  const auto is_nan = [&](llvm::Value* bits) {
    llvm::Value* const magnitude = build.CreateAnd(bits, f.magnitude_mask());
    const uint32_t largest = f.has_infinity ? f.exponent_mask() : f.overflow();
    return build.CreateICmpUGT(magnitude, llvm::ConstantInt::get(bits->getType(), largest));
  };
  const bool least = op == ScalarMinimumF || op == ScalarMinNumF;
  llvm::Value* const best = swap_negative(build.CreateBinaryIntrinsic(
      least ? llvm::Intrinsic::smin : llvm::Intrinsic::smax, swap_negative(a), swap_negative(b)));
  const bool number_wins = op == ScalarMinNumF || op == ScalarMaxNumF;
  llvm::Value* const or_b = build.CreateSelect(is_nan(b), number_wins ? a : b, best);
  return build.CreateSelect(is_nan(a), number_wins ? b : a, or_b);
}

// f32 and f64.
llvm::Value* FloatOps::native(OpKind op, const EvalAttrs& attrs, Values operands) {
  if (llvm::Value* const inlined = singles_.emit(op, attrs, operands)) return inlined;
  if (const ID intrinsic = intrinsic_of(op); intrinsic != llvm::Intrinsic::not_intrinsic) {
    return builder_.CreateUnaryIntrinsic(intrinsic, operands[0]);
  }
  if (op == ScalarFmaF) {
    return builder_.CreateIntrinsic(operands[0]->getType(), llvm::Intrinsic::fma,
                                    {operands[0], operands[1], operands[2]});
  }
  if (op == ScalarClampF) return clamp(static_cast<ClampMode>(attrs.choice), operands);
  if (operands.size() == 2) return basic(op, operands);
  if (op == ScalarSignF) {
    llvm::Value* const x = operands[0];
    llvm::Value* const sign =
        builder_.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, like(x, 1), x);
    return builder_.CreateSelect(builder_.CreateFCmpONE(x, like(x, 0)), sign, x);
  }
  return elementary(op, attrs, operands[0]);
}

llvm::Value* FloatOps::arithmetic(OpKind op, const EvalAttrs& attrs, Values operands,
                                  ScalarKind kind) {
  auto& b = builder_;
  if (!is_narrow_float(kind)) {
    llvm::IRBuilderBase::FastMathFlagGuard guard(b);
    b.setFastMathFlags(fast_math(attrs.flags));
    return native(op, attrs, operands);
  }
  if (op == ScalarMinimumF || op == ScalarMaximumF || op == ScalarMinNumF || op == ScalarMaxNumF) {
    return extreme_of_bits(op, operands[0], operands[1], kind);
  }
  llvm::Value* wide[3];
  const bool in_double =
      op == ScalarFmaF || (kind == ScalarKind::BF16 && (op == ScalarMulF || op == ScalarDivF));
  for (size_t i = 0; i < operands.size(); ++i) {
    wide[i] = in_double ? widen_to_double(operands[i], kind) : widen(operands[i], kind);
  }
  if (op == ScalarFmaF) {
    return narrow_double(sum_to_odd(b.CreateFMul(wide[0], wide[1]), wide[2]), kind);
  }
  llvm::Value* const result = native(op, attrs, Values(wide, operands.size()));
  return in_double ? narrow_double(result, kind) : narrow(result, kind);
}

llvm::Value* FloatOps::emit(OpKind op, const EvalAttrs& attrs, Values operands, ScalarKind from,
                            ScalarKind to) {
  auto& b = builder_;
  llvm::Value* const one_lane = compute_one_lane(
      b, operands, [&](Values elements) { return emit(op, attrs, elements, from, to); });
  if (one_lane != nullptr) return one_lane;
  const auto* const vector = llvm::dyn_cast<llvm::FixedVectorType>(operands[0]->getType());
  lanes_ = vector != nullptr ? vector->getNumElements() : 0;
  switch (op) {
    case ScalarSIToFP:
    case ScalarUIToFP:
      return from_integer(operands[0], op == ScalarSIToFP, to);
    case ScalarFPToSI:
    case ScalarFPToUI: {
      llvm::Value* const wide = widen(operands[0], from);
      const ID convert_to =
          op == ScalarFPToSI ? llvm::Intrinsic::fptosi_sat : llvm::Intrinsic::fptoui_sat;
      return b.CreateIntrinsic(convert_to, {shaped(llvm_type(b.getContext(), to)), wide->getType()},
                               {wide});
    }
    case ScalarExtF:
    case ScalarFPTrunc:
      return convert(operands[0], from, to);
    case ScalarNegF:
    case ScalarAbsF:
      return sign_op(op, operands[0], from);
    case ScalarCopysignF:
      return copy_sign(operands[0], operands[1], from);
    case ScalarIsNanF:
    case ScalarIsInfF:
    case ScalarIsFiniteF:
      return classify(op, widen(operands[0], from));
    case ScalarCmpF:
      return compare(static_cast<CmpFPredicate>(attrs.choice), widen(operands[0], from),
                     widen(operands[1], from));
    default:
      return arithmetic(op, attrs, operands, from);
  }
}

}  // namespace loom
