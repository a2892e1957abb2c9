// The functions of f32 that turn others around: angles of sines and tangents, cube roots. All of
// them compute in f64.
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Intrinsics.h>

#include <limits>

#include "loom/target/llvm/single_coefficients.h"
#include "loom/target/llvm/single_functions.h"

namespace loom {

namespace {

constexpr double kPi = 0x1.921fb54442d18p+1;
constexpr double kHalfPi = 0x1.921fb54442d18p+0;

}  // namespace

// z times a polynomial of its square.
llvm::Value* SingleFunctions::odd(std::span<const double> terms, V z) {
  return b_.CreateFMul(z, horner(terms, b_.CreateFMul(z, z)));
}

// Of tangents beyond 1, the angle is what is left of a right one.
llvm::Value* SingleFunctions::atan(V x) {
  V const size = absolute(widen(x));
  V const steep = b_.CreateFCmpOGT(size, number(size, 1));
  V const inverse = b_.CreateFDiv(number(size, 1), size);
  V const angle = odd(single::kAtan, b_.CreateSelect(steep, inverse, size));
  V const rest = b_.CreateFSub(number(size, kHalfPi), angle);
  return with_sign_of(narrow(b_.CreateSelect(steep, rest, angle)), x);
}

llvm::Value* SingleFunctions::atan2(V y, V x) {
  V const rise = absolute(widen(y));
  V const run = absolute(widen(x));
  V const steep = b_.CreateFCmpOGT(rise, run);
  V const least = b_.CreateSelect(steep, run, rise);
  V const most = b_.CreateSelect(steep, rise, run);
  // Two zeros are no slope, two infinities one of 1.
  V const same = b_.CreateSelect(b_.CreateFCmpOEQ(rise, number(rise, 0)), rise, number(rise, 1));
  V const slope = b_.CreateSelect(b_.CreateFCmpOEQ(rise, run), same, b_.CreateFDiv(least, most));
  V angle = odd(single::kAtan, slope);
  angle = b_.CreateSelect(steep, b_.CreateFSub(number(angle, kHalfPi), angle), angle);
  V const raw = bits(x);
  V const backward = b_.CreateICmpSLT(raw, word(raw, 0));
  angle = b_.CreateSelect(backward, b_.CreateFSub(number(angle, kPi), angle), angle);
  return with_sign_of(narrow(angle), y);
}

// The angles of sines: of sizes beyond 1/2 as what is left of a right angle, which is twice the
// angle of sqrt((1 - size) / 2). That is a NaN beyond 1.
SingleFunctions::Arc SingleFunctions::arc(V x) {
  V const size = absolute(widen(x));
  V const large = b_.CreateFCmpOGT(size, number(size, 0.5));
  V const square = mad(size, number(size, -0.5), number(size, 0.5));
  V const root = b_.CreateUnaryIntrinsic(llvm::Intrinsic::sqrt, square);
  V const angle = odd(single::kAsin, b_.CreateSelect(large, root, size));
  return {large, b_.CreateSelect(large, b_.CreateFAdd(angle, angle), angle)};
}

llvm::Value* SingleFunctions::asin(V x) {
  const Arc part = arc(x);
  V const rest = b_.CreateFSub(number(part.angle, kHalfPi), part.angle);
  return with_sign_of(narrow(b_.CreateSelect(part.large, rest, part.angle)), x);
}

llvm::Value* SingleFunctions::acos(V x) {
  const Arc part = arc(x);
  V const raw = bits(x);
  V const negative = b_.CreateICmpSLT(raw, word(raw, 0));
  V const from = b_.CreateSelect(
      part.large, b_.CreateSelect(negative, number(part.angle, kPi), number(part.angle, 0)),
      number(part.angle, kHalfPi));
  // Up from the start of a turn, down from all other places but for small negative sines.
  V const up = b_.CreateXor(part.large, negative);
  return narrow(
      b_.CreateSelect(up, b_.CreateFAdd(from, part.angle), b_.CreateFSub(from, part.angle)));
}

// 2^(log2 |x| / 3); zeros, infinities and NaNs stay.
llvm::Value* SingleFunctions::cbrt(V x) {
  V const size = absolute(widen(x));
  V const logarithm = log(size, Base::Two, single::kLogLong);
  const Power p = power(b_.CreateFMul(logarithm, number(size, 1.0 / 3)), true);
  V const root = with_sign_of(narrow(mad(p.scale, p.rest, p.scale)), x);
  V const endless = number(size, std::numeric_limits<double>::infinity());
  V const inside =
      b_.CreateAnd(b_.CreateFCmpOGT(size, number(size, 0)), b_.CreateFCmpOLT(size, endless));
  return b_.CreateSelect(inside, root, x);
}

}  // namespace loom
