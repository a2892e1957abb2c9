#include "hyperloom/optimize/search.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <random>
#include <utility>

namespace hyperloom::optimize {
namespace {

// A number below `bound` that is the same with every standard library.
size_t below(std::mt19937_64& random, size_t bound) { return random() % bound; }

template <class T>
void shuffle(std::vector<T>& items, std::mt19937_64& random) {
  for (size_t i = items.size(); i > 1; --i) std::swap(items[i - 1], items[below(random, i)]);
}

// The number of points, at most `limit` + 1.
size_t count_points(const std::vector<unsigned>& sizes, size_t limit) {
  size_t count = 1;
  for (const unsigned size : sizes) {
    count *= size;
    if (count > limit) return limit + 1;
  }
  return count;
}

class Search {
 public:
  Search(const SearchOptions& options, const SearchCalls& calls)
      : options_(options), calls_(calls), random_(options.seed) {
    const Point origin(options_.sizes.size(), 0);
    costs_[origin] = 1;
    result_.best = origin;
  }

  SearchResult sampled() {
    const size_t count = count_points(options_.sizes, options_.exhaustive_up_to);
    if (count <= options_.exhaustive_up_to) {
      every_point(count);
    } else {
      patience_ = options_.patience;
      single_changes();
      random_points();
    }
    return finish();
  }

  SearchResult descent() {
    if (count_points(options_.sizes, options_.exhaustive_up_to) > options_.exhaustive_up_to) {
      patience_ = options_.patience;
    }
    Point start(options_.sizes.size(), 0);
    for (unsigned i = 0; !ended_; ++i) {
      descend(start);
      if (i >= options_.restarts) break;
      start = random_point();
    }
    return finish();
  }

 private:
  SearchResult finish() {
    result_.exhausted = !ended_;
    return std::move(result_);
  }

  // The cost of a point, evaluated at most once; nothing as well when the search ends.
  std::optional<double> cost_of(const Point& point) {
    const auto known = costs_.find(point);
    if (known != costs_.end()) return known->second;
    if (ended_ || result_.evaluated >= options_.most || in_vain_ >= patience_ ||
        !calls_.go_on(result_.evaluated)) {
      ended_ = true;
      return std::nullopt;
    }
    ++result_.evaluated;
    ++in_vain_;
    const std::optional<double> cost = calls_.evaluate(point);
    costs_[point] = cost;
    if (cost && *cost < result_.cost) {
      if (*cost < result_.cost * (1 - options_.least_gain)) in_vain_ = 0;
      result_.cost = *cost;
      result_.best = point;
    }
    return cost;
  }

  void every_point(size_t count) {
    std::vector<size_t> order(count);
    std::iota(order.begin(), order.end(), size_t{0});
    shuffle(order, random_);
    for (const size_t number : order) {
      Point point;
      size_t rest = number;
      for (const unsigned size : options_.sizes) {
        point.push_back(static_cast<unsigned>(rest % size));
        rest /= size;
      }
      cost_of(point);
      if (ended_) return;
    }
  }

  void single_changes() {
    for (size_t axis = 0; axis < options_.sizes.size(); ++axis) {
      for (unsigned option = 1; option < options_.sizes[axis]; ++option) {
        Point point(options_.sizes.size(), 0);
        point[axis] = option;
        cost_of(point);
        if (ended_) return;
      }
    }
  }

  // Half of them next to the best one so far. Gives up where nothing new is found.
  void random_points() {
    for (int old = 0; old < 1000 && !ended_;) {
      Point point = below(random_, 2) == 0 ? random_point() : *result_.best;
      const size_t axis = below(random_, point.size());
      point[axis] = static_cast<unsigned>(below(random_, options_.sizes[axis]));
      const size_t before = costs_.size();
      cost_of(point);
      old = costs_.size() == before ? old + 1 : 0;
    }
  }

  Point random_point() {
    Point point;
    for (const unsigned size : options_.sizes) {
      point.push_back(static_cast<unsigned>(below(random_, size)));
    }
    return point;
  }

  void descend(Point point) {
    std::optional<double> cost = cost_of(point);
    std::vector<size_t> axes(point.size());
    std::iota(axes.begin(), axes.end(), size_t{0});
    for (bool gained = true; gained && !ended_;) {
      gained = false;
      shuffle(axes, random_);
      for (const size_t axis : axes) gained |= improve(point, cost, axis);
    }
  }

  bool improve(Point& point, std::optional<double>& cost, size_t axis) {
    bool gained = false;
    Point best = point;
    for (unsigned option = 0; option < options_.sizes[axis]; ++option) {
      Point next = point;
      next[axis] = option;
      const std::optional<double> found = cost_of(next);
      if (ended_) break;
      if (found && (!cost || *found < *cost * (1 - options_.least_gain))) {
        cost = found;
        best = next;
        gained = true;
      }
    }
    point = std::move(best);
    return gained;
  }

  const SearchOptions& options_;
  const SearchCalls& calls_;
  std::mt19937_64 random_;
  std::map<Point, std::optional<double>> costs_;
  SearchResult result_;
  size_t patience_ = SIZE_MAX;
  size_t in_vain_ = 0;  // evaluations since the last better one
  bool ended_ = false;
};

}  // namespace

SearchResult search_sampled(const SearchOptions& options, const SearchCalls& calls) {
  return Search(options, calls).sampled();
}

SearchResult search_descent(const SearchOptions& options, const SearchCalls& calls) {
  return Search(options, calls).descent();
}

}  // namespace hyperloom::optimize
