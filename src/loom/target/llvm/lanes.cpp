#include "loom/target/llvm/lanes.h"

#include <llvm/IR/IRBuilder.h>

#include <algorithm>
#include <numeric>
#include <vector>

namespace loom {

unsigned lanes_of(llvm::Value* vector) {
  return llvm::cast<llvm::FixedVectorType>(vector->getType())->getNumElements();
}

llvm::Value* pick_lanes(llvm::IRBuilderBase& builder, llvm::Value* from,
                        std::span<const uint64_t> lanes) {
  return builder.CreateShuffleVector(from, std::vector<int>(lanes.begin(), lanes.end()));
}

llvm::Value* pick_lanes(llvm::IRBuilderBase& builder, llvm::Value* from, unsigned count,
                        const std::function<uint64_t(unsigned)>& place) {
  std::vector<uint64_t> lanes(count);
  for (unsigned i = 0; i < count; ++i) lanes[i] = place(i);
  return pick_lanes(builder, from, lanes);
}

llvm::Value* take_lanes(llvm::IRBuilderBase& builder, llvm::Value* from, unsigned first,
                        unsigned count) {
  if (first == 0 && count == lanes_of(from)) return from;
  return pick_lanes(builder, from, count, [&](unsigned i) { return uint64_t{first} + i; });
}

// In pairs, so that parts of equal width only ever meet parts of their own width.
llvm::Value* join_lanes(llvm::IRBuilderBase& builder, std::span<llvm::Value* const> parts) {
  std::vector<llvm::Value*> rest;
  for (llvm::Value* const part : parts) {
    rest.push_back(part->getType()->isVectorTy() ? part : builder.CreateVectorSplat(1, part));
  }
  const auto join_two = [&](llvm::Value* a, llvm::Value* b) {
    const unsigned first = lanes_of(a);
    const unsigned second = lanes_of(b);
    const unsigned width = std::max(first, second);
    const auto widened = [&](llvm::Value* vector) {
      std::vector<int> mask(width, llvm::PoisonMaskElem);
      std::iota(mask.begin(), mask.begin() + lanes_of(vector), 0);
      return lanes_of(vector) == width ? vector : builder.CreateShuffleVector(vector, mask);
    };
    std::vector<int> mask(first + second);
    std::iota(mask.begin(), mask.begin() + first, 0);
    std::iota(mask.begin() + first, mask.end(), static_cast<int>(width));
    return builder.CreateShuffleVector(widened(a), widened(b), mask);
  };
  while (rest.size() > 1) {
    std::vector<llvm::Value*> joined;
    for (size_t i = 0; i + 1 < rest.size(); i += 2)
      joined.push_back(join_two(rest[i], rest[i + 1]));
    if (rest.size() % 2 != 0) joined.push_back(rest.back());
    rest = std::move(joined);
  }
  return rest[0];
}

llvm::Value* compute_one_lane(
    llvm::IRBuilderBase& builder, std::span<llvm::Value* const> operands,
    const std::function<llvm::Value*(std::span<llvm::Value* const>)>& emit) {
  if (!operands[0]->getType()->isVectorTy() || lanes_of(operands[0]) != 1) return nullptr;
  std::vector<llvm::Value*> elements;
  for (llvm::Value* const operand : operands) {
    elements.push_back(builder.CreateExtractElement(operand, uint64_t{0}));
  }
  return builder.CreateVectorSplat(1, emit(elements));
}

}  // namespace loom
