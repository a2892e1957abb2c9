#include "loom/base/id.h"

#include <gtest/gtest.h>

#include <type_traits>
#include <unordered_set>

namespace loom {
namespace {

using AppleId = Id<struct AppleTag>;
using PearId = Id<struct PearTag>;

static_assert(!std::is_convertible_v<AppleId, PearId>);
static_assert(!std::is_constructible_v<PearId, AppleId>);
static_assert(!std::is_convertible_v<uint32_t, AppleId>);
static_assert(!std::equality_comparable_with<AppleId, PearId>);
static_assert(sizeof(AppleId) == 4);

TEST(Id, DefaultNamesNothing) {
  EXPECT_FALSE(AppleId().valid());
  EXPECT_TRUE(AppleId(0u).valid());
  EXPECT_LT(AppleId(1u), AppleId(2u));
}

TEST(Id, WorksAsAHashKey) {
  const std::unordered_set<AppleId> ids{AppleId(1u), AppleId(1u), AppleId()};
  EXPECT_EQ(ids.size(), 2u);
}

}  // namespace
}  // namespace loom
