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
  Factor a, b, sum;  // floats in the type of the sum, unless an instruction takes them as they are
  unsigned together = 1;            // neighbours along k that one step takes
  std::vector<llvm::Value*> steps;  // by block and step: those rows of `b`, column by column
};

// How many neighbours one instruction of the processor multiplies and adds up.
unsigned Products::together(const ProductExtents& extents, const Factor& a, const Factor& b,
                            const Factor& sum, uint64_t flags) const {
  constexpr uint64_t kInexact = kMmaReassoc | kMmaAfn;
  const auto both = [&](ScalarKind kind) { return a.element == kind && b.element == kind; };
  if (extents.n % 4 != 0) return 1;
  if (dots_.quads && both(ScalarKind::I8) && sum.element == ScalarKind::I32 &&
      (flags & kSaturate) == 0 && extents.k % 4 == 0) {
    return 4;
  }
  const bool pairs = dots_.pairs_bf16 && both(ScalarKind::BF16) && sum.element == ScalarKind::F32;
  return pairs && (flags & kInexact) == kInexact && extents.k % 2 == 0 ? 2 : 1;
}

// Neighbours of one row of `a`, in all lanes, times those rows of `b`.
llvm::Value* Products::add_row(const Rows& rows, uint64_t block, uint64_t row, llvm::Value* sum) {
  const auto& [blocks, m, n, k] = rows.extents;
  const unsigned lanes = lanes_of(sum);
  const unsigned together = rows.together;
  for (uint64_t step = 0; step < k / together; ++step) {
    const uint64_t begin = (block * m + row) * k + step * together;
    llvm::Value* const left = pick_lanes(builder_, rows.a.lanes, lanes * together,
                                         [&](unsigned i) { return begin + i % together; });
    llvm::Value* const right = rows.steps[block * (k / together) + step];
    if (together == 4) {
      sum = dot_quads(builder_, dots_, true, true, left, right, sum);
    } else if (together == 2) {
      sum = dot_pairs_bf16(builder_, dots_, left, right, sum);
    } else if (is_float(rows.sum.element)) {
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
  Rows rows{extents, a, b, sum, together(extents, a, b, sum, flags), {}};
  const unsigned together = rows.together;
  const bool exact = (flags & kSaturate) != 0 && !is_float(sum.element);
  if (is_float(sum.element) && together == 1) {
    for (Factor* const factor : {&rows.a, &rows.b}) {
      factor->lanes = floats_.to_format(factor->lanes, factor->element, sum.element);
    }
  }
  const auto width = static_cast<unsigned>(n);
  rows.steps.reserve(blocks * k / together);
  for (uint64_t step = 0; step < blocks * k / together; ++step) {
    rows.steps.push_back(pick_lanes(builder_, rows.b.lanes, width * together, [&](unsigned i) {
      return (step * together + i % together) * n + i / together;
    }));
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
