#include "loom/command/transients.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <vector>

namespace loom {
namespace {

uint64_t slab_length(const std::vector<PackItem>& items, const std::vector<uint64_t>& offsets) {
  uint64_t length = 0;
  for (size_t i = 0; i < items.size(); ++i) {
    length = std::max(length, offsets[i] + items[i].length);
  }
  return length;
}

// Some order makes first fit as good as any placement: the one by ascending offset.
uint64_t best_length(const std::vector<PackItem>& items) {
  std::vector<size_t> order(items.size());
  std::iota(order.begin(), order.end(), 0u);
  uint64_t best = ~uint64_t{0};
  do {
    std::vector<uint64_t> offsets(items.size());
    uint64_t length = 0;
    for (size_t n = 0; n < order.size(); ++n) {
      const PackItem& item = items[order[n]];
      uint64_t at = 0;
      for (bool moved = true; moved;) {
        moved = false;
        for (size_t m = 0; m < n; ++m) {
          const PackItem& other = items[order[m]];
          const uint64_t begin = offsets[order[m]];
          if (may_share(item, other) || at >= begin + other.length || begin >= at + item.length) {
            continue;
          }
          at = (begin + other.length + item.alignment - 1) / item.alignment * item.alignment;
          moved = true;
        }
      }
      offsets[order[n]] = at;
      length = std::max(length, at + item.length);
    }
    best = std::min(best, length);
  } while (std::ranges::next_permutation(order).found);
  return best;
}

// Uses of a serial program: both numberings are the same.
PackItem serial(uint64_t length, uint64_t alignment, uint32_t first, uint32_t last) {
  return {length, alignment, first, last, first, last};
}

TEST(Transients, ASlabHoldsWhatIsInUseAtATime) {
  // A chain whose step reads what the step in front wrote needs two buffers, not ten.
  std::vector<PackItem> items;
  for (uint32_t i = 0; i < 10; ++i) items.push_back(serial(1024, 256, i, i + 1));
  EXPECT_EQ(slab_length(items, pack(items)), 2048u);
}

TEST(Transients, ConcurrentUsesDoNotShare) {
  // Forward 0 and 1, backward 1 and 0: neither precedes the other.
  const std::vector<PackItem> items = {{64, 256, 0, 0, 1, 1}, {64, 256, 1, 1, 0, 0}};
  EXPECT_FALSE(may_share(items[0], items[1]));
  EXPECT_EQ(slab_length(items, pack(items)), 320u);
}

TEST(Transients, EmptyOnesTakeNoPlace) {
  const std::vector<PackItem> items = {serial(0, 64, 0, 9), serial(8, 8, 0, 9)};
  EXPECT_EQ(pack(items), (std::vector<uint64_t>{0, 0}));
}

TEST(Transients, PackingIsWithinFivePercentOfTheBest) {
  std::mt19937_64 random(7);
  const auto below = [&](uint32_t limit) { return static_cast<uint32_t>(random() % limit); };
  for (int round = 0; round < 2000; ++round) {
    std::vector<PackItem> items;
    const uint32_t count = 2 + below(round % 20 == 0 ? 7 : 5);
    const bool with_forks = round % 2 == 0;
    for (uint32_t i = 0; i < count; ++i) {
      PackItem item = serial((1 + below(20)) * 16, uint64_t{1} << (4 + below(5)), below(8), 0);
      item.last = item.backward_last = item.first + below(4);
      if (with_forks) {
        item.backward_first = below(8);
        item.backward_last = item.backward_first + below(4);
      }
      items.push_back(item);
    }
    const uint64_t best = best_length(items);
    const uint64_t ours = slab_length(items, pack(items));
    ASSERT_GE(ours, best);
    ASSERT_LE(static_cast<double>(ours), 1.05 * static_cast<double>(best)) << "round " << round;
  }
}

// Layers of a model: activations that live for a few steps and one that lives throughout; what is
// in use at a time is what any packing needs.
TEST(Transients, PackingOfAModelIsWithinFivePercentOfWhatIsInUse) {
  for (const uint32_t layers : {4u, 32u, 128u}) {
    std::vector<PackItem> items = {serial(16384, 256, 0, layers * 8)};
    std::vector<uint64_t> in_use(layers * 8 + 9);
    std::mt19937_64 random(layers);
    for (uint32_t layer = 0; layer < layers; ++layer) {
      for (uint32_t step = 0; step < 8; ++step) {
        const uint64_t length = 256 * (1 + random() % 64);
        const uint32_t first = layer * 8 + step;
        items.push_back(
            serial(length, 256, first, first + 1 + static_cast<uint32_t>(random() % 3)));
      }
    }
    for (const PackItem& item : items) {
      for (uint32_t at = item.first; at <= item.last; ++at) in_use[at] += item.length;
    }
    const uint64_t most = *std::ranges::max_element(in_use);
    EXPECT_LE(static_cast<double>(slab_length(items, pack(items))),
              1.05 * static_cast<double>(most))
        << layers;
  }
}

TEST(Transients, ManyArePlacedWithoutOverlap) {
  std::mt19937_64 random(3);
  std::vector<PackItem> items;
  for (uint32_t i = 0; i < 20'000; ++i) {
    items.push_back(serial(1 + random() % 100, uint64_t{1} << (random() % 6), i,
                           i + static_cast<uint32_t>(random() % 4)));
  }
  const std::vector<uint64_t> offsets = pack(items);
  for (size_t i = 0; i < items.size(); ++i) {
    ASSERT_EQ(offsets[i] % items[i].alignment, 0u);
    for (size_t k = i + 1; k < std::min(items.size(), i + 8); ++k) {
      if (may_share(items[i], items[k])) continue;
      ASSERT_TRUE(offsets[i] + items[i].length <= offsets[k] ||
                  offsets[k] + items[k].length <= offsets[i]);
    }
  }
  EXPECT_LT(slab_length(items, offsets), 1000u);
}

// Everything is in use at once in a wide fork; time must not grow with the square.
TEST(Transients, AHundredThousandConcurrentOnesAreStacked) {
  std::vector<PackItem> items;
  constexpr uint32_t kCount = 100'000;
  for (uint32_t i = 0; i < kCount; ++i) items.push_back({8, 8, i, i, kCount - i, kCount - i});
  EXPECT_EQ(slab_length(items, pack(items)), uint64_t{8} * kCount);
}

}  // namespace
}  // namespace loom
