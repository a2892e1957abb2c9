#include "loom/runtime/parameters/array_text.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

namespace loom {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

uint64_t bits_of(const std::byte* at, ElementType element) {
  uint64_t bits = 0;
  std::memcpy(&bits, at, element_size(element));
  return bits;
}
uint64_t stored(ElementType element, double value) {
  std::byte at[8];
  store_float(element, value, at);
  return bits_of(at, element);
}
uint64_t literal(ElementType element, std::string_view text) {
  std::byte at[8];
  const auto result = store_literal(element, text, at);
  EXPECT_TRUE(result) << text << ": " << result.error();
  return bits_of(at, element);
}
std::string literal_error(ElementType element, std::string_view text) {
  std::byte at[8];
  const auto result = store_literal(element, text, at);
  return result ? "no error" : result.error();
}

TEST(StoreFloat, F16RoundsToNearestEven) {
  EXPECT_EQ(stored(ElementType::F16, 1.0), 0x3c00u);
  EXPECT_EQ(stored(ElementType::F16, -2.0), 0xc000u);
  EXPECT_EQ(stored(ElementType::F16, 1.0 + 0x1p-11), 0x3c00u);  // tie to the even 1
  EXPECT_EQ(stored(ElementType::F16, 1.0 + 3 * 0x1p-11), 0x3c02u);
  EXPECT_EQ(stored(ElementType::F16, 1.0 + 0x1p-11 + 0x1p-40), 0x3c01u);
  EXPECT_EQ(stored(ElementType::F16, 65504), 0x7bffu);
  EXPECT_EQ(stored(ElementType::F16, 65519.99), 0x7bffu);
  EXPECT_EQ(stored(ElementType::F16, 65520), 0x7c00u);  // tie to the even infinity
  EXPECT_EQ(stored(ElementType::F16, 1e300), 0x7c00u);
  EXPECT_EQ(stored(ElementType::F16, 0x1p-24), 0x0001u);
  EXPECT_EQ(stored(ElementType::F16, 0x1p-25), 0x0000u);
  EXPECT_EQ(stored(ElementType::F16, 0x1.8p-25), 0x0001u);
  EXPECT_EQ(stored(ElementType::F16, 0x1p-14 - 0x1p-26), 0x0400u);  // carries into a normal
  EXPECT_EQ(stored(ElementType::F16, -0.0), 0x8000u);
  EXPECT_EQ(stored(ElementType::F16, 5e-324), 0x0000u);
}

TEST(StoreFloat, Bf16IsTheRoundedUpperHalfOfF32) {
  for (const float value : {1.0f, 3.14159f, -1e-30f, 1e38f, 1e-40f, 0.1f}) {
    uint32_t bits = 0;
    std::memcpy(&bits, &value, 4);
    const uint32_t expected = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
    EXPECT_EQ(stored(ElementType::BF16, value), expected) << value;
  }
  EXPECT_EQ(stored(ElementType::BF16, std::numeric_limits<float>::max()), 0x7f80u);
}

TEST(StoreFloat, F8E4M3SaturatesAndKeepsNan) {
  EXPECT_EQ(stored(ElementType::F8E4M3, 448), 0x7eu);
  EXPECT_EQ(stored(ElementType::F8E4M3, 464), 0x7eu);  // would tie to what is NaN's code
  EXPECT_EQ(stored(ElementType::F8E4M3, 1e9), 0x7eu);
  EXPECT_EQ(stored(ElementType::F8E4M3, -kInf), 0xfeu);
  EXPECT_EQ(stored(ElementType::F8E4M3, std::nan("")), 0x7fu);
  EXPECT_EQ(stored(ElementType::F8E4M3, 0x1p-9), 0x01u);
  EXPECT_EQ(stored(ElementType::F8E4M3, 0x1p-10), 0x00u);
}

TEST(StoreFloat, F8E5M2OverflowsToInfinity) {
  EXPECT_EQ(stored(ElementType::F8E5M2, 57344), 0x7bu);
  EXPECT_EQ(stored(ElementType::F8E5M2, 61439), 0x7bu);
  EXPECT_EQ(stored(ElementType::F8E5M2, 61440), 0x7cu);
  EXPECT_EQ(stored(ElementType::F8E5M2, std::nan("")), 0x7eu);
}

TEST(LoadFloat, EveryCodeOfTheSmallFloatsComesBack) {
  for (const ElementType element :
       {ElementType::F8E4M3, ElementType::F8E5M2, ElementType::F16, ElementType::BF16}) {
    const uint32_t count = element_size(element) == 1 ? 0x100 : 0x10000;
    for (uint32_t code = 0; code < count; ++code) {
      std::byte at[8];
      std::memcpy(at, &code, 4);
      const double value = load_float(element, at);
      if (std::isnan(value)) {
        EXPECT_EQ(format_element(element, at), "nan");
        continue;
      }
      ASSERT_EQ(stored(element, value), code) << element_name(element);
      ASSERT_EQ(literal(element, format_element(element, at)), code) << element_name(element);
    }
  }
}

TEST(StoreLiteral, RoundsTheDecimalTextOnce) {
  // A hair above a tie: rounding to double first would fall back onto the tie and then to even.
  EXPECT_EQ(literal(ElementType::F16, "1.00048828125"), 0x3c00u);
  EXPECT_EQ(literal(ElementType::F16, "1.00048828125000000000000000000001"), 0x3c01u);
  EXPECT_EQ(literal(ElementType::F16, "1.00048828124999999999999999999999"), 0x3c00u);
  EXPECT_EQ(literal(ElementType::F16, "-1.00048828125000000000000000000001"), 0xbc01u);
  EXPECT_EQ(literal(ElementType::F32, "1.00000005960464477539062500000001"), 0x3f800001u);
  EXPECT_EQ(literal(ElementType::F32, "1.000000059604644775390625"), 0x3f800000u);
  EXPECT_EQ(literal(ElementType::F64, "0.1"), 0x3fb999999999999aull);
  EXPECT_EQ(literal(ElementType::F32, "1e400"), 0x7f800000u);
  EXPECT_EQ(literal(ElementType::F8E4M3, "1e400"), 0x7eu);
  EXPECT_EQ(literal(ElementType::F32, "-1e-400"), 0x80000000u);
  EXPECT_EQ(literal(ElementType::BF16, "-inf"), 0xff80u);
}

TEST(StoreLiteral, IntegersTakeTheirSignedAndUnsignedRange) {
  EXPECT_EQ(literal(ElementType::I8, "-128"), 0x80u);
  EXPECT_EQ(literal(ElementType::I8, "255"), 0xffu);
  EXPECT_EQ(literal(ElementType::I32, "0xdeadbeef"), 0xdeadbeefu);
  EXPECT_EQ(literal(ElementType::I64, "-9223372036854775808"), 0x8000000000000000ull);
  EXPECT_EQ(literal(ElementType::U64, "18446744073709551615"), ~uint64_t{0});
  EXPECT_EQ(literal(ElementType::I1, "true"), 1u);
  EXPECT_EQ(literal_error(ElementType::I8, "256"), "'256' is out of the range of i8");
  EXPECT_EQ(literal_error(ElementType::I8, "-129"), "'-129' is out of the range of i8");
  EXPECT_EQ(literal_error(ElementType::U8, "-1"), "'-1' is out of the range of u8");
  EXPECT_EQ(literal_error(ElementType::I1, "2"), "'2' is out of the range of i1");
  EXPECT_EQ(literal_error(ElementType::I64, "18446744073709551616"),
            "'18446744073709551616' is out of the range of i64");
}

TEST(StoreLiteral, RefusesOtherText) {
  EXPECT_EQ(literal_error(ElementType::I32, "1.5"), "'1.5' is not a value of i32");
  EXPECT_EQ(literal_error(ElementType::F32, "1.5x"), "'1.5x' is not a value of f32");
  EXPECT_EQ(literal_error(ElementType::F32, "+-1"), "'+-1' is not a value of f32");
  EXPECT_EQ(literal_error(ElementType::F32, ""), "'' is not a value of f32");
  EXPECT_EQ(literal_error(ElementType::I32, "0x"), "'0x' is not a value of i32");
  EXPECT_EQ(literal_error(ElementType::I32, "--1"), "'--1' is not a value of i32");
}

TEST(StoreInteger, RoundsOnceIntoFloats) {
  std::byte at[8];
  // Above the tie by one unit that a double cannot hold.
  store_integer(ElementType::BF16, (int64_t{1} << 62) + (int64_t{1} << 54) + 1, at);
  EXPECT_EQ(bits_of(at, ElementType::BF16), 0x5e81u);
  store_integer(ElementType::BF16, (int64_t{1} << 62) + (int64_t{1} << 54), at);
  EXPECT_EQ(bits_of(at, ElementType::BF16), 0x5e80u);
  store_integer(ElementType::F16, -3, at);
  EXPECT_EQ(load_float(ElementType::F16, at), -3.0);
}

TEST(LoadInteger, SaturatesFloats) {
  std::byte at[8];
  store_float(ElementType::F64, 1e300, at);
  EXPECT_EQ(load_integer(ElementType::F64, at), std::numeric_limits<int64_t>::max());
  store_float(ElementType::F64, std::nan(""), at);
  EXPECT_EQ(load_integer(ElementType::F64, at), 0);
  store_float(ElementType::F32, -2.75, at);
  EXPECT_EQ(load_integer(ElementType::F32, at), -2);
}

std::string formatted(std::string_view type_text, const std::vector<std::string>& values) {
  const ArrayType type = *parse_array_type(type_text);
  std::vector<std::byte> bytes(*type.byte_size());
  const size_t step = element_size(type.element);
  for (size_t i = 0; i < values.size(); ++i) {
    EXPECT_TRUE(store_literal(type.element, values[i], bytes.data() + i * step));
  }
  return format_array(type, bytes);
}

TEST(FormatArray, BracketsFollowTheShape) {
  EXPECT_EQ(formatted("f32", {"0.1"}), "0.1");
  EXPECT_EQ(formatted("3xi8", {"1", "-2", "3"}), "[1, -2, 3]");
  EXPECT_EQ(formatted("2x2xf16", {"1", "2.5", "3", "65504"}), "[[1, 2.5],\n [3, 65504]]");
  EXPECT_EQ(formatted("2x1x2xbf16", {"1", "2", "3", "inf"}), "[[[1, 2]],\n [[3, inf]]]");
  EXPECT_EQ(formatted("2x2x1xi1", {"1", "0", "0", "1"}), "[[[1],\n  [0]],\n [[0],\n  [1]]]");
  EXPECT_EQ(formatted("2x0xf32", {}), "[]");
}

TEST(FormatElement, IsTheShortestThatComesBack) {
  EXPECT_EQ(formatted("f16", {"0.1"}), "0.1");
  EXPECT_EQ(formatted("bf16", {"3.14159"}), "3.14");
  EXPECT_EQ(formatted("f64", {"0.30000000000000004"}), "0.30000000000000004");
  EXPECT_EQ(formatted("f32", {"16777216"}), "16777216");
  EXPECT_EQ(formatted("u64", {"18446744073709551615"}), "18446744073709551615");
}

TEST(FillLiteral, SetsEveryElement) {
  std::byte bytes[6];
  ASSERT_TRUE(fill_literal(ElementType::F16, "1.5", bytes));
  for (size_t i = 0; i < 6; i += 2) EXPECT_EQ(load_float(ElementType::F16, bytes + i), 1.5);
  EXPECT_FALSE(fill_literal(ElementType::F16, "one", bytes));
}

}  // namespace
}  // namespace loom
