// Products of matrix fragments.
#pragma once

#include "loom/target/llvm/dots.h"
#include "loom/target/llvm/float_ops.h"
#include "loom/target/llvm/fragment_plan.h"

namespace loom {

class Products {
 public:
  Products(llvm::IRBuilderBase& builder, FloatOps& floats, const DotTarget& dots)
      : builder_(builder), floats_(floats), dots_(dots) {}

  // The product of two fragments added to a third, row by row. Flags are those of flags.Mma.
  struct Factor {
    llvm::Value* lanes;
    ScalarKind element;
  };
  llvm::Value* multiply(const ProductExtents& extents, Factor a, Factor b, Factor sum,
                        uint64_t flags);

 private:
  struct Rows;
  unsigned together(const ProductExtents& extents, const Factor& a, const Factor& b,
                    const Factor& sum, uint64_t flags) const;
  llvm::Value* add_row(const Rows& rows, uint64_t block, uint64_t row, llvm::Value* sum);
  llvm::Value* add_exactly(const Rows& rows, uint64_t block, uint64_t row, llvm::Value* sum);

  llvm::IRBuilderBase& builder_;
  FloatOps& floats_;
  const DotTarget& dots_;
};

}  // namespace loom
