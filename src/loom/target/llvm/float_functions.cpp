// The elementary functions of f64.
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/Module.h>

#include <vector>

#include "loom/base/check.h"
#include "loom/target/llvm/float_ops.h"

namespace loom {

using enum OpKind;

llvm::Value* FloatOps::call_libm(const char* name, Values operands) {
  llvm::Type* const type = operands[0]->getType()->getScalarType();
  LOOM_CHECK(type->isDoubleTy(), "functions of f32 are emitted in place");
  const std::vector<llvm::Type*> types(operands.size(), type);
  llvm::Module* const module = builder_.GetInsertBlock()->getModule();
  llvm::FunctionCallee callee =
      module->getOrInsertFunction(name, llvm::FunctionType::get(type, types, false));
  if (auto* function = llvm::dyn_cast<llvm::Function>(callee.getCallee())) {
    function->setDoesNotAccessMemory();
    function->setDoesNotThrow();
    function->setWillReturn();
  }
  if (lanes_ == 0)
    return builder_.CreateCall(callee, llvm::ArrayRef(operands.data(), operands.size()));
  llvm::Value* result = llvm::PoisonValue::get(shaped(type));
  for (unsigned lane = 0; lane < lanes_; ++lane) {
    std::vector<llvm::Value*> parts;
    parts.reserve(operands.size());
    for (llvm::Value* const operand : operands) {
      parts.push_back(builder_.CreateExtractElement(operand, lane));
    }
    result = builder_.CreateInsertElement(result, builder_.CreateCall(callee, parts), lane);
  }
  return result;
}

// numerator / (1 + e^-exponent), through h = e^(-|exponent| / 2): e^-exponent itself would overflow
// where the quotient of a negative exponent is still a normal number.
llvm::Value* FloatOps::over_one_plus_exp(llvm::Value* numerator, llvm::Value* exponent) {
  auto& b = builder_;
  llvm::Value* const size = b.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, exponent);
  llvm::Value* const root =
      b.CreateUnaryIntrinsic(llvm::Intrinsic::exp, b.CreateFMul(size, like(exponent, -0.5)));
  llvm::Value* const power = b.CreateFMul(root, root);
  llvm::Value* const small = b.CreateFMul(b.CreateFMul(numerator, root), root);
  llvm::Value* const negative = b.CreateFCmpOLT(exponent, like(exponent, 0));
  llvm::Value* const dividend = b.CreateSelect(negative, small, numerator);
  return b.CreateFDiv(dividend, b.CreateFAdd(like(power, 1), power));
}

// The forms below equal their definitions and do not cancel: 1 + erf(x) = erfc(-x), and
// (1 + tanh(x)) / 2 = 1 / (1 + e^-2x).
llvm::Value* FloatOps::elementary(OpKind op, const EvalAttrs& attrs, llvm::Value* x) {
  auto& b = builder_;
  switch (op) {
    case ScalarRsqrtF:
      return b.CreateFDiv(like(x, 1), b.CreateUnaryIntrinsic(llvm::Intrinsic::sqrt, x));
    case ScalarTanhF:
      return call_libm("tanh", {&x, 1});
    case ScalarErfF:
      return call_libm("erf", {&x, 1});
    case ScalarLogisticF:
      return over_one_plus_exp(like(x, 1), x);
    case ScalarSiluF:
      return over_one_plus_exp(x, x);
    default:
      break;
  }
  if (op != ScalarGeluF) return further(op, x);
  switch (static_cast<GeluForm>(attrs.choice)) {
    case GeluForm::Erf: {
      llvm::Value* const scaled = b.CreateFMul(x, like(x, -0.70710678118654752440));
      return b.CreateFMul(b.CreateFMul(x, like(x, 0.5)), call_libm("erfc", {&scaled, 1}));
    }
    case GeluForm::Tanh: {
      llvm::Value* const square = b.CreateFMul(x, x);
      llvm::Value* const factor = b.CreateFAdd(b.CreateFMul(square, like(x, 0.044715)), like(x, 1));
      llvm::Value* const twice = b.CreateFMul(x, like(x, 2 * 0.79788456080286535588));
      return over_one_plus_exp(x, b.CreateFMul(twice, factor));
    }
    case GeluForm::Logistic:
      return over_one_plus_exp(x, b.CreateFMul(x, like(x, attrs.scale)));
  }
  return x;
}

llvm::Value* FloatOps::further(OpKind op, llvm::Value* x) {
  auto& b = builder_;
  const Values one(&x, 1);
  switch (op) {
    case ScalarExpm1F:
      return call_libm("expm1", one);
    case ScalarLog10F:
      return call_libm("log10", one);
    case ScalarLog1pF:
      return call_libm("log1p", one);
    case ScalarCbrtF:
      return call_libm("cbrt", one);
    case ScalarErfcF:
      return call_libm("erfc", one);
    case ScalarTanF:
      return call_libm("tan", one);
    case ScalarAsinF:
      return call_libm("asin", one);
    case ScalarAcosF:
      return call_libm("acos", one);
    case ScalarAtanF:
      return call_libm("atan", one);
    case ScalarSinTurnsF:
    case ScalarCosTurnsF:
      return turns(x, op == ScalarCosTurnsF);
    default:
      break;
  }
  LOOM_CHECK(op == ScalarSoftplusF, "not a float operation");
  // max(x, 0) + log1p(e^-|x|): neither overflows for large nor loses small x.
  llvm::Value* const size = b.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, x);
  llvm::Value* const power = b.CreateUnaryIntrinsic(llvm::Intrinsic::exp, b.CreateFNeg(size));
  return b.CreateFAdd(b.CreateMaximum(x, like(x, 0)), call_libm("log1p", {&power, 1}));
}

// Sine or cosine of an angle in turns. The argument is reduced, which is exact, to at most an
// eighth of a turn before it is scaled, so that quarter turns are exact.
llvm::Value* FloatOps::turns(llvm::Value* x, bool cosine) {
  auto& b = builder_;
  const auto absolute = [&](llvm::Value* v) {
    return b.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, v);
  };
  // In [-1/2, 1/2]; a NaN for infinities.
  llvm::Value* const part = b.CreateFSub(x, b.CreateUnaryIntrinsic(llvm::Intrinsic::roundeven, x));
  llvm::Value* const size = absolute(part);
  llvm::Value* const beyond = b.CreateFCmpOGT(size, like(x, 0.25));
  llvm::Value* const folded = b.CreateSelect(beyond, b.CreateFSub(like(x, 0.5), size), size);
  // sin and cos of `folded`, in [0, 1/4], swap over at an eighth.
  llvm::Value* const late = b.CreateFCmpOGT(folded, like(x, 0.125));
  llvm::Value* const near = b.CreateSelect(late, b.CreateFSub(like(x, 0.25), folded), folded);
  llvm::Value* sine = nullptr;
  llvm::Value* other = nullptr;
  if (x->getType()->getScalarType()->isFloatTy()) {
    sine = singles_.sin_of_turns(near);
    other = singles_.cos_of_turns(near);
  } else {
    llvm::Value* const angle = b.CreateFMul(near, like(x, 6.28318530717958647693));
    sine = b.CreateUnaryIntrinsic(llvm::Intrinsic::sin, angle);
    other = b.CreateUnaryIntrinsic(llvm::Intrinsic::cos, angle);
  }
  if (cosine) {
    llvm::Value* const value = b.CreateSelect(late, sine, other);
    llvm::Value* const is_zero = b.CreateFCmpOEQ(value, like(x, 0));
    return b.CreateSelect(b.CreateAnd(beyond, b.CreateNot(is_zero)), b.CreateFNeg(value), value);
  }
  llvm::Value* const value = b.CreateSelect(late, other, sine);
  // A whole or half turn gives a zero with the sign of x.
  llvm::Value* const sign = b.CreateSelect(b.CreateFCmpOEQ(value, like(x, 0)), x, part);
  return b.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, value, sign);
}

}  // namespace loom
