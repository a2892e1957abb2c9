#include "loom/target/llvm/products.h"

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Intrinsics.h>

#include <algorithm>
#include <bit>

#include "loom/dialect/op_info.h"
#include "loom/target/llvm/lanes.h"

namespace loom {

using enum OpKind;

struct Products::Rows {
  const ProductExtents& extents;
  Factor a, b, sum;                     // floats in the type of the sum
  std::vector<llvm::Value*> rows_of_b;  // by block and k
};

// Each element of one row of `a`, in all lanes, times that row of `b`.
llvm::Value* Products::add_row(const Rows& rows, uint64_t block, uint64_t row, llvm::Value* sum) {
  const auto& [blocks, m, n, k] = rows.extents;
  const unsigned lanes = lanes_of(sum);
  for (uint64_t step = 0; step < k; ++step) {
    llvm::Value* const left = pick_lanes(builder_, rows.a.lanes, lanes,
                                         [&](unsigned) { return (block * m + row) * k + step; });
    llvm::Value* const right = rows.rows_of_b[block * k + step];
    if (is_float(rows.sum.element)) {
      llvm::Value* const terms[] = {left, right, sum};
      sum = floats_.emit(ScalarFmaF, {}, terms, rows.sum.element, rows.sum.element);
    } else {
      const auto wide = [&](llvm::Value* from) {
        return builder_.CreateSExtOrTrunc(from, sum->getType());
      };
      sum = builder_.CreateAdd(sum, builder_.CreateMul(wide(left), wide(right)));
    }
  }
  return sum;
}

// Integers whose exact sum is held in the range of the accumulator.
llvm::Value* Products::add_exactly(const Rows& rows, uint64_t block, uint64_t row,
                                   llvm::Value* sum) {
  auto& b = builder_;
  const unsigned bits = scalar_bits(rows.sum.element);
  const unsigned product = scalar_bits(rows.a.element) + scalar_bits(rows.b.element) +
                           static_cast<unsigned>(std::bit_width(rows.extents.k));
  const unsigned width = std::max(product, bits) + 1 <= 64 ? 64 : 192;
  llvm::Type* const narrow = sum->getType();
  sum = add_row(rows, block, row, b.CreateSExt(sum, narrow->getWithNewBitWidth(width)));
  const llvm::APInt most = llvm::APInt::getSignedMaxValue(bits).sext(width);
  sum = b.CreateBinaryIntrinsic(llvm::Intrinsic::smin, sum,
                                llvm::ConstantInt::get(sum->getType(), most));
  sum = b.CreateBinaryIntrinsic(llvm::Intrinsic::smax, sum,
                                llvm::ConstantInt::get(sum->getType(), -most - 1));
  return b.CreateTrunc(sum, narrow);
}

llvm::Value* Products::multiply(const ProductExtents& extents, Factor a, Factor b, Factor sum,
                                uint64_t flags) {
  const auto& [blocks, m, n, k] = extents;
  Rows rows{extents, a, b, sum, {}};
  const bool exact = (flags & kSaturate) != 0;
  if (is_float(sum.element)) {
    for (Factor* const factor : {&rows.a, &rows.b}) {
      factor->lanes = floats_.to_format(factor->lanes, factor->element, sum.element);
    }
  }
  const auto width = static_cast<unsigned>(n);
  rows.rows_of_b.reserve(blocks * k);
  for (uint64_t step = 0; step < blocks * k; ++step) {
    rows.rows_of_b.push_back(
        take_lanes(builder_, rows.b.lanes, static_cast<unsigned>(step * n), width));
  }
  std::vector<llvm::Value*> parts;
  parts.reserve(blocks * m);
  for (uint64_t block = 0; block < blocks; ++block) {
    for (uint64_t row = 0; row < m; ++row) {
      llvm::Value* const own =
          take_lanes(builder_, sum.lanes, static_cast<unsigned>((block * m + row) * n), width);
      parts.push_back(exact ? add_exactly(rows, block, row, own) : add_row(rows, block, row, own));
    }
  }
  return join_lanes(builder_, parts);
}

}  // namespace loom
