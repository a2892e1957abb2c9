#include "loom/base/failed_checks.h"

#include <gtest/gtest.h>

#include <vector>

namespace loom {
namespace {

TEST(FailedChecks, AreFoundByTheArgumentsOfTheKernelOnce) {
  const std::vector<uint64_t> slots(8);
  const std::vector<uint64_t> others(8);
  EXPECT_FALSE(failed_checks_pending());
  loom_check_failed(slots.data() + 3, "first");
  loom_check_failed(slots.data() + 3, "again");
  loom_check_failed(slots.data() + 7, "last");
  EXPECT_TRUE(failed_checks_pending());
  EXPECT_EQ(take_failed_check(others.data(), others.size()), std::nullopt);
  EXPECT_EQ(take_failed_check(slots.data(), 3), std::nullopt);
  EXPECT_EQ(take_failed_check(slots.data(), slots.size()), "first");
  EXPECT_EQ(take_failed_check(slots.data(), slots.size()), std::nullopt);
  EXPECT_FALSE(failed_checks_pending());
}

TEST(FailedChecks, OfCallersThatNeverAskAreBounded) {
  const std::vector<uint64_t> slots(1000);
  for (const uint64_t& slot : slots) loom_check_failed(&slot, "forgotten");
  EXPECT_EQ(take_failed_check(slots.data(), 744), std::nullopt);
  EXPECT_EQ(take_failed_check(slots.data(), slots.size()), "forgotten");
  EXPECT_FALSE(failed_checks_pending());
}

}  // namespace
}  // namespace loom
