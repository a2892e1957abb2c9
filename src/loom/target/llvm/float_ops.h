// Float operations of every format, each rounded once.
//
// A narrow format computes in the narrowest native format in which the operation's result, rounded
// again, equals the exact result rounded once:
//
//   f8, f16    + - * / sqrt in f32: 24 bits are at least 2 * 11 + 2, and f32 reaches below their
//              denormals
//   bf16       + - in f32; * / in f64, since bf16 has the exponents of f32, whose own denormals
//              would round first
//   fma        in f64, the sum rounded to odd (an inexact result takes an odd last bit), which a
//              later rounding to at least two bits less cannot distort
//
// The elementary functions of a narrow format compute in f32.
#pragma once

#include <span>

#include "loom/dialect/eval.h"
#include "loom/target/llvm/llvm_types.h"
#include "loom/target/llvm/single_functions.h"

namespace llvm {
class IRBuilderBase;
class Type;
class Value;
}  // namespace llvm

namespace loom {

// What one instruction of the target does.
struct FloatTarget {
  bool converts_half = false;  // between f16 and f32
  bool fuses = false;          // multiply and add, rounded once
};

struct NumericFormat;

class FloatOps {
 public:
  FloatOps(llvm::IRBuilderBase& builder, const FloatTarget& target)
      : builder_(builder), singles_(builder, target.fuses), converts_half_(target.converts_half) {}

  // An operation of the scalar dialect with a float operand or result; `from` is the type of its
  // first operand, `to` of its result. Operands that are LLVM vectors, all of as many lanes, are
  // computed lane by lane.
  llvm::Value* emit(OpKind op, const EvalAttrs& attrs, std::span<llvm::Value* const> operands,
                    ScalarKind from, ScalarKind to);
  // Numbers of one format, rounded once to another.
  llvm::Value* to_format(llvm::Value* value, ScalarKind from, ScalarKind to);
  // The numbers that codes of a format stand for, rounded to `to`: integers with the code in the
  // low bits.
  llvm::Value* decode(llvm::Value* codes, const NumericFormat& format, ScalarKind to);
  // The codes nearest to numbers, held to the format's range, as integers of at least its bits. The
  // format is an integer one or stored_as() a scalar type.
  llvm::Value* encode(llvm::Value* value, ScalarKind from, const NumericFormat& format);

 private:
  using Values = std::span<llvm::Value* const>;

  llvm::Value* widen(llvm::Value* value, ScalarKind from);
  llvm::Value* widen_small(llvm::Value* codes, const NumericFormat& format);
  llvm::Value* power_of_two(llvm::Value* codes);
  llvm::Value* widen_to_double(llvm::Value* value, ScalarKind from);
  llvm::Value* narrow(llvm::Value* single, ScalarKind to);
  llvm::Value* narrow_bf16(llvm::Value* bits);
  llvm::Value* narrow_double(llvm::Value* value, ScalarKind to);
  llvm::Value* sum_to_odd(llvm::Value* a, llvm::Value* b);
  llvm::Value* convert(llvm::Value* value, ScalarKind from, ScalarKind to);
  llvm::Value* from_integer(llvm::Value* value, bool is_signed, ScalarKind to);
  llvm::Value* compare(CmpFPredicate predicate, llvm::Value* a, llvm::Value* b);
  llvm::Value* sign_op(OpKind op, llvm::Value* value, ScalarKind kind);
  llvm::Value* extreme_of_bits(OpKind op, llvm::Value* a, llvm::Value* b, ScalarKind kind);
  llvm::Value* arithmetic(OpKind op, const EvalAttrs& attrs, Values operands, ScalarKind kind);
  llvm::Value* native(OpKind op, const EvalAttrs& attrs, Values operands);
  llvm::Value* basic(OpKind op, Values operands);
  llvm::Value* elementary(OpKind op, const EvalAttrs& attrs, llvm::Value* x);
  llvm::Value* over_one_plus_exp(llvm::Value* numerator, llvm::Value* exponent);
  llvm::Value* call_libm(const char* name, Values operands);
  llvm::Value* turns(llvm::Value* x, bool cosine);
  llvm::Value* further(OpKind op, llvm::Value* x);
  llvm::Value* clamp(ClampMode mode, Values operands);
  llvm::Value* classify(OpKind op, llvm::Value* x);
  llvm::Value* copy_sign(llvm::Value* a, llvm::Value* b, ScalarKind kind);
  llvm::Type* shaped(llvm::Type* scalar) const;
  llvm::Type* integers(unsigned bits) const;
  llvm::Type* halves() const;
  llvm::Type* singles() const;
  llvm::Type* doubles() const;
  llvm::Value* i32(uint32_t value);
  llvm::Value* like_bits(llvm::Value* x, uint64_t value);
  llvm::Value* like(llvm::Value* x, double value);

  llvm::IRBuilderBase& builder_;
  SingleFunctions singles_;
  const bool converts_half_;
  unsigned lanes_ = 0;  // of the operands of this emit(); 0 for scalars
};

}  // namespace loom
