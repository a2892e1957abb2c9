// How Loom's scalars look in LLVM.
//
// Integers keep their width, index and offset are i64. f32 and f64 are native; narrower floats are
// integers that hold their bits (float_ops.h computes with them). In memory i1 takes one byte.
#pragma once

#include <string_view>

#include "loom/dialect/numeric.h"
#include "loom/ir/type.h"

namespace llvm {
class Constant;
class IRBuilderBase;
class LLVMContext;
class Type;
class Value;
}  // namespace llvm

namespace loom {

llvm::Type* llvm_type(llvm::LLVMContext& context, ScalarKind kind);
llvm::Type* llvm_memory_type(llvm::LLVMContext& context, ScalarKind kind);
llvm::Constant* llvm_constant(llvm::LLVMContext& context, ScalarValue value);
llvm::Value* to_memory(llvm::IRBuilderBase& builder, llvm::Value* value, ScalarKind kind);
llvm::Value* from_memory(llvm::IRBuilderBase& builder, llvm::Value* value, ScalarKind kind);

// True for the formats that are held as their bits.
inline bool is_narrow_float(ScalarKind kind) { return is_float(kind) && scalar_bits(kind) < 32; }

}  // namespace loom
