#include "loom/target/llvm/llvm_types.h"

#include <llvm/IR/Constants.h>
#include <llvm/IR/IRBuilder.h>

namespace loom {

llvm::Type* llvm_type(llvm::LLVMContext& context, ScalarKind kind) {
  if (kind == ScalarKind::F32) return llvm::Type::getFloatTy(context);
  if (kind == ScalarKind::F64) return llvm::Type::getDoubleTy(context);
  return llvm::Type::getIntNTy(context, scalar_bits(kind));
}

llvm::Type* llvm_memory_type(llvm::LLVMContext& context, ScalarKind kind) {
  if (kind == ScalarKind::I1) return llvm::Type::getInt8Ty(context);
  return llvm_type(context, kind);
}

llvm::Constant* llvm_constant(llvm::LLVMContext& context, ScalarValue value) {
  const unsigned bits = scalar_bits(value.kind);
  const llvm::APInt pattern(bits, value.bits);
  if (value.kind == ScalarKind::F32) {
    return llvm::ConstantFP::get(context, llvm::APFloat(llvm::APFloat::IEEEsingle(), pattern));
  }
  if (value.kind == ScalarKind::F64) {
    return llvm::ConstantFP::get(context, llvm::APFloat(llvm::APFloat::IEEEdouble(), pattern));
  }
  return llvm::ConstantInt::get(context, pattern);
}

llvm::Value* to_memory(llvm::IRBuilderBase& builder, llvm::Value* value, ScalarKind kind) {
  return kind == ScalarKind::I1 ? builder.CreateZExt(value, builder.getInt8Ty()) : value;
}

llvm::Value* from_memory(llvm::IRBuilderBase& builder, llvm::Value* value, ScalarKind kind) {
  return kind == ScalarKind::I1 ? builder.CreateIsNotNull(value) : value;
}

}  // namespace loom
