#include "loom/runtime/parameters/array_type.h"

#include <gtest/gtest.h>

namespace loom {
namespace {

std::string error_of(std::string_view text) {
  const auto type = parse_array_type(text);
  return type ? "no error" : type.error();
}

TEST(ArrayType, PrintsWhatItParses) {
  for (const char* text : {"f32", "4x8xf32", "0xi8", "1x2x3x4x5xbf16", "7xf8E4M3", "7xf8E5M2",
                           "3xi1", "3xu64", "2xi64", "2xf64", "2xf16", "2xi16", "2xi32", "2xu8"}) {
    const auto type = parse_array_type(text);
    ASSERT_TRUE(type) << text << ": " << type.error();
    EXPECT_EQ(to_string(*type), text);
  }
}

TEST(ArrayType, MeasuresBytes) {
  EXPECT_EQ(parse_array_type("4x8xf32")->byte_size(), 128u);
  EXPECT_EQ(parse_array_type("f64")->byte_size(), 8u);
  EXPECT_EQ(parse_array_type("9x0xf64")->byte_size(), 0u);
  EXPECT_EQ(parse_array_type("3xi1")->byte_size(), 3u);
}

TEST(ArrayType, RefusesSizesPast63Bits) {
  EXPECT_TRUE(parse_array_type("9223372036854775807xi8"));
  EXPECT_EQ(error_of("9223372036854775808xi8"), "the size in bytes does not fit in 63 bits");
  EXPECT_EQ(error_of("4611686018427387904xi16"), "the size in bytes does not fit in 63 bits");
  EXPECT_EQ(error_of("4294967296x4294967296xi8"), "the size in bytes does not fit in 63 bits");
  // A zero extent anywhere makes the whole empty.
  EXPECT_EQ(parse_array_type("4294967296x4294967296x0xi8")->byte_size(), 0u);
}

TEST(ArrayType, NamesWhatIsMalformed) {
  EXPECT_EQ(error_of("4x-1xf32"), "'-1' is not a dimension");
  EXPECT_EQ(error_of("xf32"), "'' is not a dimension");
  EXPECT_EQ(error_of("99999999999999999999xf32"),
            "dimension '99999999999999999999' does not fit in 64 bits");
  EXPECT_EQ(error_of("4x").find("'' is not an element type; known are i1, i8"), 0u);
  EXPECT_EQ(error_of("4xf31").find("'f31' is not an element type"), 0u);
  EXPECT_EQ(error_of("f32x4").find("'f32' is not a dimension"), 0u);
}

}  // namespace
}  // namespace loom
