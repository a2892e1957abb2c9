// Elementary functions of f32 as straight code: no call, no table, no branch, so that they stay
// vectors in vectors and LLVM vectorizes loops around them.
//
// Without flags every result is within 2 ulp of the exact value, special values as in
// dialect/eval.h. Most functions compute in f64, in which a short polynomial leaves an error of
// some 2^-30, and round once. `afn` allows forms in f32:
//
//   exp, exp2    2 ulp; 0 for denormal results, infinity from 2^127.5 on
//   logistic     4 ulp of results that are not denormal
//   silu, gelu   2^-21 of the operand or of the result, whichever is larger
//   tanh         2^-21
#pragma once

#include <span>

#include "loom/dialect/eval.h"
#include "loom/dialect/op_kind.h"

namespace llvm {
class IRBuilderBase;
class Type;
class Value;
}  // namespace llvm

namespace loom {

class SingleFunctions {
 public:
  // `fuses`: the target multiplies and adds in one instruction. Otherwise results may differ in the
  // last bits, within the same bounds.
  SingleFunctions(llvm::IRBuilderBase& builder, bool fuses) : b_(builder), fuses_(fuses) {}

  // The operation of f32 scalars, or of vectors lane by lane; null for operations that are not
  // here.
  llvm::Value* emit(OpKind op, const EvalAttrs& attrs, std::span<llvm::Value* const> operands);

  // Sine and cosine of an angle in turns, at most an eighth.
  llvm::Value* sin_of_turns(llvm::Value* turns);
  llvm::Value* cos_of_turns(llvm::Value* turns);

 private:
  using V = llvm::Value*;
  // e^y = scale (1 + rest)
  struct Power {
    V scale;
    V rest;
  };
  // An angle as quarter turns, of which `count` ends in the bits of their number, and the rest.
  struct Angle {
    V count;
    V rest;
  };
  // The angle of a sine of at most 1/2, or what a larger one leaves of a right angle.
  struct Arc {
    V large;
    V angle;
  };
  enum class Base : unsigned char { E, Two, Ten };

  llvm::Type* shaped(llvm::Type* scalar, V like) const;
  V widen(V x);
  V narrow(V x);
  V bits(V x);
  V floats(V x, llvm::Type* scalar);
  V number(V like, double value);
  V word(V like, unsigned long long value);
  V mad(V a, V b, V c);
  V horner(std::span<const double> terms, V x);
  V absolute(V x);
  V with_sign_of(V magnitude, V x);
  V at_most(V x, double high);
  V clamped(V x, double low, double high);

  Power power(V y, bool of_two = false);
  V exp(V y);
  V exp_single(V x, bool of_two, bool approximate);
  V expm1(V y);
  V log(V x, Base base, std::span<const double> terms);
  V checked_log(V x, double pole, V value);
  V log1p(V x);
  V softplus(V x);
  V logistic_times(V factor, V argument);
  V tanh(V x);
  V erf(V x);
  V erfc_of_positive(V z);
  V erfc(V x);
  V gelu(const EvalAttrs& attrs, V x);
  V approximate(OpKind op, const EvalAttrs& attrs, V x);
  V gelu_argument(const EvalAttrs& attrs, V x);
  Angle reduced(V x);
  V sine(V x);
  V cosine(V x);
  V tangent(V x);
  V sin_polynomial(V rest);
  V cos_polynomial(V rest);
  V pow(V x, V y);
  // (single_inverses.cpp)
  V odd(std::span<const double> terms, V z);
  V atan(V x);
  V atan2(V y, V x);
  Arc arc(V x);
  V asin(V x);
  V acos(V x);
  V cbrt(V x);

  llvm::IRBuilderBase& b_;
  const bool fuses_;
};

}  // namespace loom
