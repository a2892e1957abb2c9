// The extents of matrix fragments and of their products, where they are known before any code is
// made (dialect/eval_vector_contract.cpp finds the same ones when it computes).
#pragma once

#include <cstdint>
#include <optional>

#include "loom/target/llvm/exact.h"

namespace loom {

// More elements along one axis than any vector has lanes.
inline constexpr uint64_t kMaxFragmentExtent = 1 << 16;

struct FragmentExtents {
  uint64_t blocks = 1;
  uint64_t rows = 0;
  uint64_t columns = 0;

  uint64_t elements() const { return blocks * rows * columns; }
};
// Of a fragment operation; nothing where an extent is not exact, not positive, or where the lanes
// of its vector are not the elements of the fragment.
std::optional<FragmentExtents> fragment_extents(const Module& module, const ExactValues& exact,
                                                OpId op);

struct ProductExtents {
  uint64_t blocks = 1;
  uint64_t m = 0;
  uint64_t n = 0;
  uint64_t k = 0;
};
// Some fragment of the module states how many blocks it has.
bool states_blocks(const Module& module);
// Of a vector.mma; nothing where the fragments do not fit together, or where what comes through a
// loop or a call could be of several blocks, `in_blocks` being states_blocks().
std::optional<ProductExtents> product_extents(const Module& module, const ExactValues& exact,
                                              OpId mma, bool in_blocks);

}  // namespace loom
