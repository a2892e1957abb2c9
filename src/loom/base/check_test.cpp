#include "loom/base/check.h"

#include <gtest/gtest.h>

#include <cstdio>

namespace loom {
namespace {

TEST(CheckDeathTest, BreachCallsTheHandlerWithItsConditionThenAborts) {
  EXPECT_DEATH(
      {
        set_check_handler([](const char*, int, const char* condition, const char* message) {
          (void)std::fprintf(stderr, "breached: %s: %s\n", condition, message);
        });
        LOOM_CHECK(1 + 1 == 3, "sums are right");
      },
      "breached: 1 \\+ 1 == 3: sums are right");
}

TEST(Check, HoldingConditionDoesNothing) {
  int evaluations = 0;
  LOOM_CHECK(++evaluations == 1, "evaluated once");
  EXPECT_EQ(evaluations, 1);
}

}  // namespace
}  // namespace loom
