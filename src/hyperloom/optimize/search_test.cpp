#include "hyperloom/optimize/search.h"

#include <gtest/gtest.h>

#include <set>

namespace hyperloom::optimize {
namespace {

// A cost with one best point, which both axes have to agree on.
std::optional<double> valley(const Point& point) {
  double cost = 1;
  for (size_t axis = 0; axis < point.size(); ++axis) {
    cost *= point[axis] == axis % 3 + 1 ? 0.5 : 1.0 + 0.01 * point[axis];
  }
  return cost;
}

struct Recorder {
  std::vector<Point> points;
  size_t allowed = SIZE_MAX;
  SearchCalls calls(std::function<std::optional<double>(const Point&)> cost = valley) {
    return {[this, cost](const Point& point) {
              points.push_back(point);
              return cost(point);
            },
            [this](size_t evaluated) { return evaluated < allowed; }};
  }
};

TEST(Search, SmallSpacesAreTriedPointByPoint) {
  Recorder recorder;
  const auto found = search_sampled({.sizes = {4, 4}}, recorder.calls());
  EXPECT_EQ(found.best, (Point{1, 2}));
  EXPECT_DOUBLE_EQ(found.cost, 0.25);
  EXPECT_EQ(found.evaluated, 15U) << "all but the origin";
  EXPECT_TRUE(found.exhausted);
  EXPECT_EQ(std::set<Point>(recorder.points.begin(), recorder.points.end()).size(), 15U);
}

TEST(Search, LargeSpacesAreSampled) {
  Recorder recorder;
  const auto found =
      search_sampled({.sizes = Point(6, 8), .seed = 7, .most = 300}, recorder.calls());
  EXPECT_EQ(found.evaluated, 300U);
  EXPECT_FALSE(found.exhausted);
  EXPECT_LT(found.cost, 0.1);
}

TEST(Search, DescentFindsWhatEachAxisGains) {
  Recorder recorder;
  const auto found = search_descent({.sizes = Point(10, 5), .restarts = 0}, recorder.calls());
  EXPECT_EQ(found.best, (Point{1, 2, 3, 1, 2, 3, 1, 2, 3, 1}));
  EXPECT_TRUE(found.exhausted);
}

TEST(Search, EqualSeedsTryEqualPoints) {
  for (const auto search : {search_sampled, search_descent}) {
    Recorder first;
    Recorder again;
    Recorder other;
    search({.sizes = Point(5, 6), .seed = 3, .most = 60}, first.calls());
    search({.sizes = Point(5, 6), .seed = 3, .most = 60}, again.calls());
    search({.sizes = Point(5, 6), .seed = 4, .most = 60}, other.calls());
    EXPECT_EQ(first.points, again.points);
    EXPECT_NE(first.points, other.points);
  }
}

TEST(Search, EndsWhenItMayNotGoOn) {
  for (const auto search : {search_sampled, search_descent}) {
    Recorder recorder;
    recorder.allowed = 4;
    const auto found = search({.sizes = Point(5, 6)}, recorder.calls());
    EXPECT_EQ(found.evaluated, 4U);
    EXPECT_EQ(recorder.points.size(), 4U);
    EXPECT_FALSE(found.exhausted);
  }
}

TEST(Search, EndsWhenNothingBetterComesForLong) {
  const auto flat = [](const Point&) -> std::optional<double> { return 1.0; };
  for (const auto search : {search_sampled, search_descent}) {
    Recorder recorder;
    const auto found = search({.sizes = Point(6, 6), .patience = 12}, recorder.calls(flat));
    EXPECT_EQ(found.evaluated, 12U);
    EXPECT_FALSE(found.exhausted);
    Recorder small;
    EXPECT_EQ(search({.sizes = {5, 5}, .patience = 3}, small.calls(flat)).exhausted, true);
  }
}

TEST(Search, DescentDoesNotFollowNoise) {
  const auto noisy = [](const Point& point) -> std::optional<double> {
    return 1.0 - 0.001 * (point[0] + point[1]);
  };
  Recorder recorder;
  search_descent({.sizes = {4, 4}, .least_gain = 0.01, .restarts = 0}, recorder.calls(noisy));
  EXPECT_EQ(recorder.points.size(), 6U) << "each axis once, from the origin";
}

TEST(Search, WithoutAnythingBetterTheOriginIsBest) {
  const auto worse = [](const Point& point) -> std::optional<double> {
    if (point[0] == 1) return std::nullopt;
    return 1.5;
  };
  for (const auto search : {search_sampled, search_descent}) {
    Recorder recorder;
    const auto found = search({.sizes = {3, 2}}, recorder.calls(worse));
    EXPECT_EQ(found.best, (Point{0, 0}));
    EXPECT_EQ(found.cost, 1);
  }
}

TEST(Search, SpaceWithoutChoicesIsExhaustedAtOnce) {
  for (const auto search : {search_sampled, search_descent}) {
    Recorder recorder;
    EXPECT_TRUE(search({}, recorder.calls()).exhausted);
    EXPECT_TRUE(search({.sizes = {1}}, recorder.calls()).exhausted);
    EXPECT_TRUE(recorder.points.empty());
  }
}

}  // namespace
}  // namespace hyperloom::optimize
