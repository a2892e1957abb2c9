// Bit fields of a little-endian stream, as the lanes of a vector: field i begins at bit i * width.
#pragma once

namespace llvm {
class IRBuilderBase;
class Type;
class Value;
}  // namespace llvm

namespace loom {

// The fields of all lanes of `from`, which have width * count bits, extended to `element`.
llvm::Value* unpack_fields(llvm::IRBuilderBase& builder, llvm::Value* from, unsigned width,
                           unsigned count, bool is_signed, llvm::Type* element);
// The low `width` bits of each lane, as the lanes of `to`, which have as many bits in all.
llvm::Value* pack_fields(llvm::IRBuilderBase& builder, llvm::Value* from, unsigned width,
                         llvm::Type* to);

}  // namespace loom
