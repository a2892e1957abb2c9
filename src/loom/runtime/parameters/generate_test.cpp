#include "loom/runtime/parameters/generate.h"

#include <gtest/gtest.h>

#include "loom/runtime/parameters/array_text.h"

namespace loom {
namespace {

// Every array that a word makes, as "name=values".
std::vector<std::string> made(std::string_view word) {
  const auto recipe = parse_recipe(word);
  if (!recipe) return {recipe.error()};
  GeneratedArrays arrays;
  Diagnostics diagnostics;
  if (const auto added = arrays.add(*recipe, diagnostics); !added) return {added.error()};
  std::vector<std::string> out;
  for (const ParameterSource& source : arrays.sources()) {
    out.push_back(source.name + "=" + format_array(source.type, source.bytes));
  }
  return out;
}
using Words = std::vector<std::string>;

TEST(Generate, Values) {
  EXPECT_EQ(made("w=3xf16:1.5"), Words{"w=[1.5, 1.5, 1.5]"});
  EXPECT_EQ(made("2xi8:-1"), Words{"=[-1, -1]"});
  EXPECT_EQ(made("w=0xf32:1"), Words{"w=[]"});
}

TEST(Generate, IotaRunsThroughAllArraysOfAPattern) {
  EXPECT_EQ(made("w=2x2xf32:iota:1:0.5"), Words{"w=[[1, 1.5],\n [2, 2.5]]"});
  EXPECT_EQ(made("blk.{0..2}.w=2xi32:iota:10:-1"),
            (Words{"blk.0.w=[10, 9]", "blk.1.w=[8, 7]", "blk.2.w=[6, 5]"}));
  EXPECT_EQ(made("w=2xu64:iota:18446744073709551614:1"),
            Words{"w=[18446744073709551614, 18446744073709551615]"});
}

TEST(Generate, RandomFollowsItsFormula) {
  // The first outputs of the published SplitMix64 generator for the seed 1234567.
  EXPECT_EQ(random_word(1234567, 0), 6457827717110365317u);
  EXPECT_EQ(random_word(1234567, 1), 3203168211198807973u);
  EXPECT_EQ(made("w=2xu64:random:1234567:0:18446744073709551615"),
            Words{"w=[6457827717110365317, 3203168211198807973]"});
  const double first = -1 + 2 * (static_cast<double>(6457827717110365317u >> 11) / 0x1p53);
  const auto arrays = made("{7..8}=1xf64:random:1234567:-1:1");
  ASSERT_EQ(arrays.size(), 2u);
  std::byte at[8];
  store_float(ElementType::F64, first, at);
  EXPECT_EQ(arrays[0], "7=[" + format_element(ElementType::F64, at) + "]");
  EXPECT_NE(arrays[1].substr(2), arrays[0].substr(2));
}

TEST(Generate, RandomIntegersReachBothEnds) {
  const std::string text = made("w=200xi8:random:3:-1:1")[0];
  EXPECT_NE(text.find("-1"), std::string::npos);
  EXPECT_NE(text.find("0"), std::string::npos);
  EXPECT_NE(text.find(" 1"), std::string::npos);
  EXPECT_EQ(text.find("2"), std::string::npos);
}

TEST(Generate, PatternsExpandInOrder) {
  EXPECT_EQ(*expand_pattern("a"), Words{"a"});
  EXPECT_EQ(*expand_pattern("{1..2}.{9..10}"), (Words{"1.9", "1.10", "2.9", "2.10"}));
  EXPECT_EQ(*expand_pattern("{x}.{}"), Words{"{x}.{}"});
  EXPECT_EQ(expand_pattern("{2..1}").error(), "the range {2..1} runs backwards");
  EXPECT_EQ(expand_pattern("{0..999999}.{0..1}").error(),
            "'{0..999999}.{0..1}' stands for more than 1000000 names");
  EXPECT_EQ(expand_pattern("{0..18446744073709551615}").error(),
            "'{0..18446744073709551615}' stands for more than 1000000 names");
}

TEST(Generate, ErrorsSayWhatIsWrong) {
  EXPECT_EQ(made("w"), Words{"'w' is not NAME=TYPE:SPEC"});
  EXPECT_EQ(made("=f32:1"), Words{"'=f32:1' has no name before '='"});
  EXPECT_EQ(made("w=2xf33:1")[0].find("'w=2xf33:1': 'f33' is not an element type"), 0u);
  EXPECT_EQ(made("w=f32:iota:1"), Words{"'iota:1' is not iota:START:STEP"});
  EXPECT_EQ(made("w=f32:random:1:2"), Words{"'random:1:2' is not random:SEED:LO:HI"});
  EXPECT_EQ(made("w=f32:random:-1:0:1"), Words{"the seed '-1' is not an unsigned integer"});
  EXPECT_EQ(made("w=f32:random:1:2:1"), Words{"LO is above HI"});
  EXPECT_EQ(made("w=i8:random:1:2:1"), Words{"LO is above HI"});
  EXPECT_EQ(made("w=i64:random:1:-2:18446744073709551615"),
            Words{"LO to HI is more than 2^64 values"});
  EXPECT_EQ(made("w=300xi8:iota:0:1"), Words{"the values leave the range of i8"});
  EXPECT_EQ(made("w=2xi8:iota:0:0.5"), Words{"'0.5' is not an integer as i8 needs it"});
  EXPECT_EQ(made("w=2xf32:iota:a:1"), Words{"'a' is not a number"});
  EXPECT_EQ(made("w=2xf32:one"), Words{"'one' is not a value of f32"});
  EXPECT_EQ(made("w=99999999999xf32:1"), Words{"the arrays of 'w' need more than 16 GiB"});
  EXPECT_EQ(made("{0..9}=2000000000xi8:1"), Words{"the arrays of '{0..9}' need more than 16 GiB"});
}

}  // namespace
}  // namespace loom
