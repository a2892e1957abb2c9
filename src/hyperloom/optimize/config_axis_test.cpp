#include "hyperloom/optimize/config_axis.h"

#include <gtest/gtest.h>

namespace hyperloom::optimize {
namespace {

using Values = std::vector<int64_t>;

TEST(ConfigAxis, SmallRangesAreTriedWhole) {
  EXPECT_EQ(neighbours(2, {.minimum = 1, .maximum = 4}), (Values{1, 3, 4}));
  EXPECT_EQ(neighbours(4, {.minimum = 1, .maximum = 16, .multiple_of = 4}), (Values{8, 12, 16}));
  EXPECT_EQ(neighbours(4, {.minimum = 1, .maximum = 16, .power_of_two = true}),
            (Values{1, 2, 8, 16}));
}

TEST(ConfigAxis, LargeRangesAreTriedAroundTheValue) {
  EXPECT_EQ(neighbours(4, {}), (Values{1, 2, 8, 16, 32, 64}));
  EXPECT_EQ(neighbours(6, {.maximum = 20}), (Values{1, 2, 3, 4, 8, 12, 16}));
  EXPECT_EQ(neighbours(64, {.minimum = 32, .power_of_two = true}),
            (Values{32, 128, 256, 512, 1024}));
}

TEST(ConfigAxis, ValuesThatAreNoSizesHaveNoNeighbours) {
  EXPECT_TRUE(neighbours(0, {}).empty());
  EXPECT_TRUE(neighbours(-8, {}).empty());
}

TEST(ConfigAxis, HugeValuesDoNotOverflow) {
  for (const int64_t value : neighbours(INT64_MAX, {})) EXPECT_GT(value, 0);
  EXPECT_TRUE(neighbours(1, {.minimum = INT64_MIN, .maximum = INT64_MAX}).size() > 2);
}

TEST(ConfigAxis, OnlyTheValueOfItsLineIsReplaced) {
  const std::string text = "config.def @a = 1 : index\n  config.def @b.c = 64 : index  // @b.c\n";
  EXPECT_EQ(replace_config_value(text, 2, "b.c", "8"),
            "config.def @a = 1 : index\n  config.def @b.c = 8 : index  // @b.c\n");
  EXPECT_EQ(replace_config_value("config.def @t =4: i32", 1, "t", "16"), "config.def @t =16: i32");
}

TEST(ConfigAxis, LinesOfAnotherFormAreLeftAlone) {
  for (const char* text : {"", "config.decl @a : index", "config.def @ab = 1 : index",
                           "config.def @a", "config.def @a = ", "config.def @a = : index"}) {
    EXPECT_EQ(replace_config_value(text, 1, "a", "8"), std::nullopt) << text;
  }
  EXPECT_EQ(replace_config_value("config.def @a = 1 : index", 2, "a", "8"), std::nullopt);
}

}  // namespace
}  // namespace hyperloom::optimize
