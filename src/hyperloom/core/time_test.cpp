#include "hyperloom/core/time.h"

#include <gtest/gtest.h>

namespace hyperloom {
namespace {

TEST(Deadlines, OnesWithoutEndNeverPass) {
  EXPECT_FALSE(Deadline().passed());
  EXPECT_TRUE(Deadline::in_seconds(1e18).unlimited());
  EXPECT_TRUE(Deadline::in_seconds(0).passed());
  EXPECT_TRUE(Deadline::in_seconds(-5).passed());
  EXPECT_EQ(Deadline::in_seconds(-5).seconds_left(), 0);
  EXPECT_TRUE(Deadline().earlier(Deadline::in_seconds(0)).passed());
}

}  // namespace
}  // namespace hyperloom
