#include "loom/base/suggest.h"

#include <gtest/gtest.h>

namespace loom {
namespace {

TEST(Suggest, FindsOneMistake) {
  constexpr std::string_view kWords = "addf subf mulf divf minimumf maximumf";
  EXPECT_EQ(suggest("adf", kWords), "did you mean 'addf'?");    // left out
  EXPECT_EQ(suggest("addff", kWords), "did you mean 'addf'?");  // inserted
  EXPECT_EQ(suggest("mulg", kWords), "did you mean 'mulf'?");   // replaced
  EXPECT_EQ(suggest("dvif", kWords), "did you mean 'divf'?");   // swapped
  EXPECT_EQ(suggest("minimmf", kWords), "did you mean 'minimumf'?");
}

TEST(Suggest, SaysNothingWhereNothingIsClose) {
  EXPECT_EQ(suggest("transpose", "addf subf"), "");
  EXPECT_EQ(suggest("addf", "addf"), "");  // the word itself is no correction
  EXPECT_EQ(suggest("x", "y"), "");        // nothing of the word is left
  EXPECT_EQ(suggest("", "a b"), "");
  EXPECT_EQ(suggest("addf", ""), "");
  EXPECT_EQ(suggest(std::string(1000, 'a'), std::string(999, 'a')), "");
}

TEST(Suggest, PrefersTheClosestThenTheFirst) {
  EXPECT_EQ(suggest("scalar.adf", "scalar.absf scalar.addf scalar.andi"),
            "did you mean 'scalar.addf'?");
  EXPECT_EQ(suggest("cat", "bat hat rat"), "did you mean 'bat'?");
}

}  // namespace
}  // namespace loom
