#include "loom/check/tensor.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "loom/runtime/parameters/generate.h"

namespace loom::check {
namespace {

using enum ScalarKind;

std::vector<std::byte> made(ScalarKind kind, size_t count, auto&& generate) {
  std::vector<std::byte> bytes(count * scalar_bytes(kind));
  generate(std::span<std::byte>(bytes));
  return bytes;
}

// Computed apart from this code, by the definition in the reference of the dialect.
TEST(Random, WordsAreTheDocumentedOnes) {
  EXPECT_EQ(random_word(0, 0), 0xe220a8397b1dcdafull);
  EXPECT_EQ(random_word(0, 1), 0x6e789e6aa1b965f4ull);
  EXPECT_EQ(random_word(0, 2), 0x06c45d188009454full);
}

TEST(Random, FloatsAreTheDocumentedOnesInEveryFormat) {
  const auto bytes = [&](ScalarKind kind) {
    return made(kind, 3, [&](auto out) {
      random_floats(out, kind, 0, from_double(kind, -1), from_double(kind, 1));
    });
  };
  // -1 + 2 * u for u = 0.8833108082136426, 0.43152799704850997, 0.026433771592597743.
  const std::vector<std::byte> doubles = bytes(F64);
  EXPECT_EQ(to_double(load(doubles, F64, 0)), 0.7666216164272852);
  EXPECT_EQ(to_double(load(doubles, F64, 1)), -0.13694400590298006);
  EXPECT_EQ(to_double(load(doubles, F64, 2)), -0.9471324568148045);
  for (const ScalarKind kind : {F32, F16, BF16, F8E4M3, F8E5M2}) {
    const std::vector<std::byte> rounded = bytes(kind);
    for (uint64_t i = 0; i < 3; ++i) {
      EXPECT_EQ(load(rounded, kind, i), from_double(kind, to_double(load(doubles, F64, i))));
    }
  }
}

// In f8 one value in eight rounds up to the bound.
TEST(Random, FloatsStayBelowTheUpperBoundAndReachTheLower) {
  for (const ScalarKind kind : {F8E4M3, F8E5M2, F16, F32}) {
    const auto tensor = made(kind, 4096, [&](auto out) {
      random_floats(out, kind, 5, from_double(kind, 1), from_double(kind, 2));
    });
    for (uint64_t i = 0; i < 4096; ++i) {
      const double value = to_double(load(tensor, kind, i));
      ASSERT_GE(value, 1);
      ASSERT_LT(value, 2);
    }
  }
  const auto one = made(F32, 8, [&](auto out) {
    random_floats(out, F32, 5, from_double(F32, 3), from_double(F32, 3));
  });
  EXPECT_EQ(to_double(load(one, F32, 7)), 3);
}

TEST(Random, IntegersReachBothBounds) {
  const auto tensor = made(I8, 1000, [&](auto out) { random_integers(out, I8, 9, -2, 1); });
  int seen[4] = {0, 0, 0, 0};
  for (uint64_t i = 0; i < 1000; ++i) {
    const int64_t value = as_signed(load(tensor, I8, i));
    ASSERT_GE(value, -2);
    ASSERT_LE(value, 1);
    ++seen[value + 2];
  }
  for (const int count : seen) EXPECT_GT(count, 200);
  // As unsigned bytes.
  const auto wide = made(I8, 1000, [&](auto out) { random_integers(out, I8, 9, 0, 200); });
  for (uint64_t i = 0; i < 1000; ++i) ASSERT_LE(load(wide, I8, i).bits, 200u);
  const auto all =
      made(I64, 4, [&](auto out) { random_integers(out, I64, 0, INT64_MIN, INT64_MAX); });
  EXPECT_EQ(load(all, I64, 0).bits, 0xe220a8397b1dcdafull + (uint64_t{1} << 63));
}

TEST(Iota, RisesByTheStepWithinThePeriod) {
  const auto floats = made(
      F16, 7, [&](auto out) { iota(out, F16, from_double(F16, -1), from_double(F16, 0.5), 3); });
  for (uint64_t i = 0; i < 7; ++i) {
    EXPECT_EQ(to_double(load(floats, F16, i)), -1 + 0.5 * static_cast<double>(i % 3));
  }
  const auto bytes =
      made(I8, 300, [&](auto out) { iota(out, I8, from_bits(I8, 250), from_bits(I8, 1), 0); });
  EXPECT_EQ(load(bytes, I8, 5).bits, 255u);
  EXPECT_EQ(load(bytes, I8, 6).bits, 0u);
}

TEST(Fill, SetsEveryElement) {
  const auto tensor = made(BF16, 5, [&](auto out) { fill(out, BF16, from_double(BF16, 1.5)); });
  for (uint64_t i = 0; i < 5; ++i) EXPECT_EQ(to_double(load(tensor, BF16, i)), 1.5);
}

TEST(NextBelow, CrossesZero) {
  EXPECT_LT(to_double(next_below(from_double(F32, 0))), 0);
  EXPECT_EQ(next_below(from_double(F32, 1)).bits,
            std::bit_cast<uint32_t>(std::nextafter(1.0f, 0.0f)));
  EXPECT_EQ(next_below(from_double(F64, -1)).bits,
            std::bit_cast<uint64_t>(std::nextafter(-1.0, -2.0)));
}

TEST(Arena, TensorsAreAlignedApartAndUsedAgain) {
  Arena arena;
  const auto first = arena.take(100);
  const auto second = arena.take(4 << 20);
  ASSERT_TRUE(first && second);
  EXPECT_EQ(std::bit_cast<uintptr_t>(first->data()) % Buffer::kAlignment, 0u);
  EXPECT_EQ(std::bit_cast<uintptr_t>(second->data()) % Buffer::kAlignment, 0u);
  EXPECT_FALSE(arena.damaged());
  (*second)[second->size() - 1] = std::byte{1};
  EXPECT_FALSE(arena.damaged());
  first->data()[100] = std::byte{1};
  EXPECT_EQ(arena.damaged(), std::optional<size_t>(0));
  arena.reset();
  EXPECT_FALSE(arena.damaged());
  const auto again = arena.take(100);
  EXPECT_EQ(again->data(), first->data());
  EXPECT_FALSE(arena.damaged());
  second->data()[-1] = std::byte{0};
  EXPECT_FALSE(arena.take(uint64_t{1} << 60));
}

}  // namespace
}  // namespace loom::check
