#include "loom/check/compare.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

namespace loom::check {
namespace {

using enum ScalarKind;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

// Floats as a tensor of one axis.
struct Floats {
  std::vector<float> values;
  CaseValue value;

  explicit Floats(std::vector<float> of) : values(std::move(of)) {
    value = std::as_writable_bytes(std::span(values));
  }
  Elements elements() const { return {value, F32, {static_cast<int64_t>(values.size())}}; }
};

Comparison compared(std::vector<float> a, std::vector<float> e, const Tolerance& rule) {
  const Floats actual(std::move(a));
  const Floats expected(std::move(e));
  return compare(actual.elements(), expected.elements(), rule);
}

constexpr Tolerance kEqual{};
constexpr Tolerance kBitwise{.rule = Tolerance::Rule::Bitwise};

TEST(Compare, ZerosAndNanDifferByRule) {
  EXPECT_EQ(compared({0.0f}, {-0.0f}, kEqual).mismatches, 0u);
  EXPECT_EQ(compared({0.0f}, {-0.0f}, kBitwise).mismatches, 1u);
  EXPECT_EQ(compared({kNan}, {kNan}, kEqual).mismatches, 1u);
  EXPECT_EQ(compared({kNan}, {kNan}, kBitwise).mismatches, 0u);
}

TEST(Compare, CloseFollowsItsFormula) {
  Tolerance close{.rule = Tolerance::Rule::Close, .absolute = 0.5, .relative = 0.25};
  EXPECT_EQ(compared({4.0f}, {2.0f}, close).mismatches, 1u);  // 2 > 0.5 + 0.5
  EXPECT_EQ(compared({3.0f}, {2.0f}, close).mismatches, 0u);  // 1 <= 1
  EXPECT_EQ(compared({2.0f}, {4.0f}, close).mismatches, 1u);  // 2 > 0.5 + 1
  EXPECT_EQ(compared({2.5f}, {4.0f}, close).mismatches, 0u);  // 1.5 <= 1.5
  EXPECT_EQ(compared({kInf}, {kInf}, close).mismatches, 0u);
  EXPECT_EQ(compared({kInf}, {-kInf}, close).mismatches, 1u);
  EXPECT_EQ(compared({1.0f}, {kInf}, close).mismatches, 1u);
  EXPECT_EQ(compared({kNan}, {kNan}, close).mismatches, 1u);
  close.same_nan = true;
  EXPECT_EQ(compared({kNan}, {kNan}, close).mismatches, 0u);
  EXPECT_EQ(compared({kNan}, {1.0f}, close).mismatches, 1u);
  EXPECT_EQ(compared({1.0f}, {kNan}, close).mismatches, 1u);
}

TEST(Compare, FirstAndWorstAreNamed) {
  const Comparison found = compared({0, 1.5f, 7, 3, kNan}, {0, 1, 2, 3, 4}, kEqual);
  EXPECT_EQ(found.mismatches, 3u);
  EXPECT_EQ(found.elements, 5u);
  EXPECT_EQ(found.first.index, 1u);
  EXPECT_EQ(found.first.ulps, std::optional<uint64_t>(1u << 22));
  EXPECT_EQ(found.first.relative, std::optional<double>(0.5));
  EXPECT_EQ(found.worst.index, 4u);  // a NaN is farther than any number
  EXPECT_FALSE(found.worst.ulps.has_value());
  EXPECT_EQ(compared({0, 1.5f, 7}, {0, 1, 2}, kEqual).worst.index, 2u);
}

TEST(Compare, UlpsCountValuesAcrossZero) {
  const auto apart = [](float a, float b) {
    return ulp_distance(from_double(F32, static_cast<double>(a)),
                        from_double(F32, static_cast<double>(b)));
  };
  EXPECT_EQ(apart(1.0f, std::nextafter(1.0f, 2.0f)), 1u);
  EXPECT_EQ(apart(0.0f, -0.0f), 0u);
  EXPECT_EQ(apart(std::nextafter(0.0f, 1.0f), std::nextafter(0.0f, -1.0f)), 2u);
  EXPECT_EQ(ulp_distance(from_double(F64, -1.0e308), from_double(F64, 1.0e308)),
            2 * from_double(F64, 1.0e308).bits);
  Tolerance ulp{.rule = Tolerance::Rule::Ulp, .ulps = 1};
  EXPECT_EQ(compared({1.0f}, {std::nextafter(1.0f, 2.0f)}, ulp).mismatches, 0u);
  ulp.ulps = 0;
  EXPECT_EQ(compared({1.0f}, {std::nextafter(1.0f, 2.0f)}, ulp).mismatches, 1u);
}

TEST(Compare, PlacesFollowTheShape) {
  std::vector<float> values(6);
  const CaseValue value = std::as_writable_bytes(std::span(values));
  EXPECT_EQ(Elements(value, F32, {2, 3}).place(5), "[1, 2]");
  EXPECT_EQ(Elements(scalar_argument(from_bits(I32, 3)), I32, {}).place(0), "");
}

TEST(Ranking, OrdersByValueThenPlaceAndPutsNanLast) {
  const Floats values({1, kNan, 3, 3, -2});
  EXPECT_EQ(ranking(values.elements(), 3), (std::vector<uint64_t>{2, 3, 0}));
  EXPECT_EQ(ranking(values.elements(), 99), (std::vector<uint64_t>{2, 3, 0, 4, 1}));
}

}  // namespace
}  // namespace loom::check
