#include "loom/base/interner.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace loom {
namespace {

TEST(Interner, EqualTextGivesTheEqualIdAndIdsAreDenseInFirstInternOrder) {
  StringInterner interner;
  EXPECT_EQ(interner.intern("alpha").index(), 0u);
  EXPECT_EQ(interner.intern("beta").index(), 1u);
  EXPECT_EQ(interner.intern(std::string("alp") + "ha").index(), 0u);
  EXPECT_EQ(interner.size(), 2u);
  EXPECT_EQ(interner.text(StringId(1u)), "beta");
}

TEST(Interner, FindNeverInterns) {
  StringInterner interner;
  EXPECT_FALSE(interner.find("absent").valid());
  EXPECT_EQ(interner.size(), 0u);
  const StringId id = interner.intern("present");
  EXPECT_EQ(interner.find("present"), id);
}

TEST(Interner, EmptyTextAndEmbeddedZerosAreOrdinaryText) {
  StringInterner interner;
  using namespace std::string_view_literals;
  const StringId empty = interner.intern("");
  const StringId one_zero = interner.intern("\0"sv);
  const StringId two_zeros = interner.intern("\0\0"sv);
  EXPECT_NE(empty, one_zero);
  EXPECT_NE(one_zero, two_zeros);
  EXPECT_EQ(interner.text(empty), "");
  EXPECT_EQ(interner.text(two_zeros).size(), 2u);
}

TEST(Interner, TextStaysInPlaceWhileTheTableGrowsAndTheInternerMoves) {
  StringInterner interner;
  const StringId first = interner.intern("first");
  const char* place = interner.text(first).data();
  // Longer than one storage block, so that it gets a block of its own.
  const std::string huge(100'000, 'h');
  const StringId huge_id = interner.intern(huge);
  std::vector<StringId> ids;
  for (int i = 0; i < 5000; ++i) ids.push_back(interner.intern("name" + std::to_string(i)));
  StringInterner moved = std::move(interner);
  EXPECT_EQ(moved.text(first).data(), place);
  EXPECT_EQ(moved.text(huge_id), huge);
  for (int i = 0; i < 5000; ++i) {
    const std::string text = "name" + std::to_string(i);
    EXPECT_EQ(moved.find(text), ids[i]);
    EXPECT_EQ(moved.text(ids[i]), text);
  }
}

}  // namespace
}  // namespace loom
