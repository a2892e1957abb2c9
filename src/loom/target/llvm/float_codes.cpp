// Numeric formats of encoded payloads: codes to numbers and back.
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Intrinsics.h>

#include <bit>
#include <cmath>

#include "loom/base/check.h"
#include "loom/dialect/schema.h"
#include "loom/target/llvm/float_ops.h"

namespace loom {

using enum OpKind;
using Kind = NumericFormat::Kind;

namespace {

bool is_integer_format(const NumericFormat& format) {
  return format.kind == Kind::Signed || format.kind == Kind::Unsigned;
}

// Integers of that many bits hold a code.
unsigned carrier_bits(const NumericFormat& format) {
  return std::max(8u, std::bit_ceil(unsigned{format.bits}));
}

ScalarKind integer_kind(unsigned bits) {
  return bits == 8    ? ScalarKind::I8
         : bits == 16 ? ScalarKind::I16
         : bits == 32 ? ScalarKind::I32
                      : ScalarKind::I64;
}

}  // namespace

// A power of two; all ones is NaN and 0 the least one, which is a denormal of f32.
llvm::Value* FloatOps::power_of_two(llvm::Value* codes) {
  auto& b = builder_;
  llvm::Value* const bits = b.CreateZExt(codes, integers(32));
  llvm::Value* result = b.CreateShl(bits, 23);
  result = b.CreateSelect(b.CreateIsNull(bits), i32(0x00400000), result);
  result = b.CreateSelect(b.CreateICmpEQ(bits, i32(0xff)), i32(0x7fc00000), result);
  return b.CreateBitCast(result, singles());
}

// A float of at most eight bits as f32, which holds them all.
llvm::Value* FloatOps::widen_small(llvm::Value* codes, const NumericFormat& format) {
  auto& b = builder_;
  const unsigned magnitude_bits = format.bits - 1u;
  const uint32_t all = (1u << magnitude_bits) - 1;
  const auto bias = static_cast<unsigned>(format.bias);
  llvm::Value* const bits = b.CreateZExt(codes, integers(32));
  llvm::Value* const magnitude = b.CreateAnd(bits, all);
  llvm::Value* const shifted = b.CreateShl(magnitude, 23u - format.mantissa);
  llvm::Value* result = b.CreateAdd(shifted, i32((127 - bias) << 23));
  // A denormal m stands for (1 + m) - 1 at the least exponent.
  const uint32_t least = (128 - bias) << 23;
  llvm::Value* const one_plus = b.CreateBitCast(b.CreateOr(shifted, least), singles());
  llvm::Value* const denormal = b.CreateFSub(one_plus, b.CreateBitCast(i32(least), singles()));
  result = b.CreateSelect(b.CreateICmpULT(magnitude, i32(1u << format.mantissa)),
                          b.CreateBitCast(denormal, integers(32)), result);
  if (format.kind == Kind::Ieee) {
    const uint32_t greatest = all & ~((1u << format.mantissa) - 1);
    const uint32_t top = greatest >> format.mantissa;
    llvm::Value* const special = b.CreateAdd(shifted, i32((255 - top) << 23));
    result = b.CreateSelect(b.CreateICmpUGE(magnitude, i32(greatest)), special, result);
  } else if (format.kind == Kind::FiniteNan) {
    result = b.CreateSelect(b.CreateICmpEQ(magnitude, i32(all)), i32(0x7fc00000), result);
  } else if (format.kind == Kind::NegZeroNan) {
    llvm::Value* const is_nan = b.CreateICmpEQ(bits, i32(1u << magnitude_bits));
    result = b.CreateSelect(is_nan, i32(0x7fc00000), result);
  }
  llvm::Value* const sign = b.CreateShl(b.CreateLShr(bits, magnitude_bits), 31);
  return b.CreateBitCast(b.CreateOr(result, sign), singles());
}

llvm::Value* FloatOps::to_format(llvm::Value* value, ScalarKind from, ScalarKind to) {
  if (from == to) return value;
  const auto* const vector = llvm::dyn_cast<llvm::FixedVectorType>(value->getType());
  lanes_ = vector != nullptr ? vector->getNumElements() : 0;
  return convert(value, from, to);
}

llvm::Value* FloatOps::decode(llvm::Value* codes, const NumericFormat& format, ScalarKind to) {
  auto& b = builder_;
  const auto* const vector = llvm::dyn_cast<llvm::FixedVectorType>(codes->getType());
  lanes_ = vector != nullptr ? vector->getNumElements() : 0;
  const unsigned carrier = carrier_bits(format);
  codes = b.CreateZExtOrTrunc(codes, integers(carrier));
  const unsigned unused = carrier - format.bits;
  if (is_integer_format(format)) {
    const bool is_signed = format.kind == Kind::Signed;
    if (unused != 0) {
      codes = b.CreateShl(codes, unused);
      codes = is_signed ? b.CreateAShr(codes, unused) : b.CreateLShr(codes, unused);
    }
    llvm::Value* const operands[] = {codes};
    return emit(is_signed ? ScalarSIToFP : ScalarUIToFP, {}, operands, integer_kind(carrier), to);
  }
  if (unused != 0) codes = b.CreateAnd(codes, (uint64_t{1} << format.bits) - 1);
  if (format.kind == Kind::Scale) return convert(power_of_two(codes), ScalarKind::F32, to);
  switch (format.bits) {
    case 64:
      return convert(b.CreateBitCast(codes, doubles()), ScalarKind::F64, to);
    case 32:
      return convert(b.CreateBitCast(codes, singles()), ScalarKind::F32, to);
    case 16:
      return convert(codes, format.mantissa == 10 ? ScalarKind::F16 : ScalarKind::BF16, to);
    default:
      return convert(widen_small(codes, format), ScalarKind::F32, to);
  }
}

llvm::Value* FloatOps::encode(llvm::Value* value, ScalarKind from, const NumericFormat& format) {
  auto& b = builder_;
  const auto* const vector = llvm::dyn_cast<llvm::FixedVectorType>(value->getType());
  lanes_ = vector != nullptr ? vector->getNumElements() : 0;
  if (!is_integer_format(format)) {
    const auto kind = stored_as(format);
    LOOM_CHECK(kind.has_value(), "codes that no scalar type stores");
    llvm::Value* const number = convert(value, from, *kind);
    return b.CreateBitCast(number, integers(format.bits));
  }
  // f32 holds every integer of 24 bits.
  llvm::Value* const wide = format.bits > 24 ? widen_to_double(value, from) : widen(value, from);
  const bool is_signed = format.kind == Kind::Signed;
  const double span = std::ldexp(1.0, format.bits - (is_signed ? 1 : 0));
  llvm::Value* const least = like(wide, is_signed ? -span : 0.0);
  llvm::Value* const most = like(wide, span - 1.0);
  llvm::Value* held = b.CreateUnaryIntrinsic(llvm::Intrinsic::roundeven, wide);
  held = b.CreateSelect(b.CreateFCmpOLT(held, least), least, held);
  held = b.CreateSelect(b.CreateFCmpOGT(held, most), most, held);
  held = b.CreateSelect(b.CreateFCmpUNO(wide, wide), like(wide, 0.0), held);
  llvm::Type* const integer = integers(std::max(32u, carrier_bits(format)));
  llvm::Value* const codes =
      is_signed || format.bits < 32 ? b.CreateFPToSI(held, integer) : b.CreateFPToUI(held, integer);
  return b.CreateTrunc(codes, integers(carrier_bits(format)));
}

}  // namespace loom
