// Dot products of neighbours by the processor's own instructions.
#pragma once

namespace llvm {
class IRBuilderBase;
class Value;
}  // namespace llvm

namespace loom {

// Which of these instructions there are, for vectors of 16, 32 and, with `wide`, 64 bytes.
struct DotTarget {
  bool pairs_bf16 = false;
  bool quads = false;
  bool wide = false;
};

// Each lane of `sums` (f32, a multiple of four lanes) plus the products of two neighbours of `a`
// and `b`, which are the bits of bf16. The instruction may round in another order than a chain of
// fused multiply-adds and takes denormals for zero.
llvm::Value* dot_pairs_bf16(llvm::IRBuilderBase& builder, const DotTarget& target, llvm::Value* a,
                            llvm::Value* b, llvm::Value* sums);

// Each lane of `sums` (i32, a multiple of four lanes) plus the products of four neighbours of `a`
// and `b` (i8), modulo two to the 32.
llvm::Value* dot_quads(llvm::IRBuilderBase& builder, const DotTarget& target, bool a_signed,
                       bool b_signed, llvm::Value* a, llvm::Value* b, llvm::Value* sums);

}  // namespace loom
