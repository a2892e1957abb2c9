#include "loom/target/llvm/llvm_types.h"

#include <llvm/IR/Constants.h>
#include <llvm/IR/IRBuilder.h>

#include <algorithm>

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

std::optional<uint64_t> static_lanes(const Type& type) {
  if (type.kind != TypeKind::Vector) return std::nullopt;
  uint64_t lanes = 1;
  for (const Dim dim : type.dims) {
    if (dim.is_dynamic()) return std::nullopt;
    const auto extent = static_cast<uint64_t>(dim.extent());
    if (extent != 0 && lanes > UINT64_MAX / extent) return std::nullopt;
    lanes *= extent;
  }
  return lanes;
}

llvm::Type* llvm_value_type(llvm::LLVMContext& context, const Type& type) {
  llvm::Type* const element = llvm_type(context, type.element);
  const auto lanes = static_lanes(type);
  if (!lanes) return element;
  return llvm::FixedVectorType::get(element, static_cast<unsigned>(std::max<uint64_t>(*lanes, 1)));
}

llvm::Value* to_memory(llvm::IRBuilderBase& builder, llvm::Value* value, ScalarKind kind) {
  if (kind != ScalarKind::I1) return value;
  return builder.CreateZExt(value, value->getType()->getWithNewBitWidth(8));
}

llvm::Value* from_memory(llvm::IRBuilderBase& builder, llvm::Value* value, ScalarKind kind) {
  return kind == ScalarKind::I1 ? builder.CreateIsNotNull(value) : value;
}

}  // namespace loom
