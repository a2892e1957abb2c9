// How Loom's scalars look in LLVM.
//
// Integers keep their width, index and offset are i64. f32 and f64 are native; narrower floats are
// integers that hold their bits (float_ops.h computes with them). In memory i1 takes one byte.
#pragma once

#include <optional>
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
// Of a vector with static extents their product; nullopt for any other type.
std::optional<uint64_t> static_lanes(const Type& type);
// A scalar, or a vector as an LLVM vector of its lanes in row-major order; one without lanes has
// one that means nothing.
llvm::Type* llvm_value_type(llvm::LLVMContext& context, const Type& type);
// What lies in memory of scalars and of whole vectors.
llvm::Value* to_memory(llvm::IRBuilderBase& builder, llvm::Value* value, ScalarKind kind);
llvm::Value* from_memory(llvm::IRBuilderBase& builder, llvm::Value* value, ScalarKind kind);

// True for the formats that are held as their bits.
inline bool is_narrow_float(ScalarKind kind) { return is_float(kind) && scalar_bits(kind) < 32; }

}  // namespace loom
