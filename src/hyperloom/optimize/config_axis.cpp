#include "hyperloom/optimize/config_axis.h"

#include <algorithm>
#include <set>

namespace hyperloom::optimize {
namespace {

constexpr int64_t kSmallRange = 16;
constexpr int kDoublings = 4;

bool allows(const IntegerRange& range, int64_t value) {
  if (range.minimum && value < *range.minimum) return false;
  if (range.maximum && value > *range.maximum) return false;
  if (range.multiple_of > 1 && value % range.multiple_of != 0) return false;
  return !range.power_of_two || (value > 0 && (value & (value - 1)) == 0);
}

bool is_small(const IntegerRange& range) {
  return range.minimum && range.maximum && *range.maximum >= *range.minimum &&
         *range.minimum > INT64_MIN / 2 && *range.maximum < INT64_MAX / 2 &&
         *range.maximum - *range.minimum < kSmallRange;
}

}  // namespace

std::vector<int64_t> neighbours(int64_t current, const IntegerRange& range) {
  std::set<int64_t> values;
  if (is_small(range)) {
    for (int64_t value = *range.minimum; value <= *range.maximum; ++value) values.insert(value);
  } else if (current > 0) {
    // The powers of two around it, and what doubling and halving reach from it.
    int64_t power = 1;
    while (power <= current / 2) power *= 2;
    for (int i = 0; i <= kDoublings; ++i) {
      values.insert(power >> i);
      values.insert(current >> i);
      if (power < (INT64_MAX >> kDoublings)) values.insert(power << i);
      if (current < (INT64_MAX >> kDoublings)) values.insert(current << i);
    }
    values.erase(0);
  }
  values.erase(current);
  std::vector<int64_t> result;
  std::ranges::copy_if(values, std::back_inserter(result),
                       [&](int64_t value) { return allows(range, value); });
  return result;
}

std::optional<std::string> replace_config_value(std::string_view text, unsigned line,
                                                std::string_view key, std::string_view value) {
  size_t begin = 0;
  for (unsigned i = 1; i < line; ++i) {
    begin = text.find('\n', begin);
    if (begin == std::string_view::npos) return std::nullopt;
    ++begin;
  }
  const size_t end = std::min(text.find('\n', begin), text.size());
  const std::string_view words = text.substr(begin, end - begin);
  const std::string name = "@" + std::string(key);
  const size_t definition = words.find("config.def");
  const size_t at = words.find(name, definition == std::string_view::npos ? 0 : definition);
  if (definition == std::string_view::npos || at == std::string_view::npos) return std::nullopt;
  const size_t equals = words.find_first_not_of(" \t", at + name.size());
  if (equals == std::string_view::npos || words[equals] != '=') return std::nullopt;
  const size_t first = words.find_first_not_of(" \t", equals + 1);
  if (first == std::string_view::npos) return std::nullopt;
  const size_t last = words.find_first_of(" \t:", first);
  if (last == std::string_view::npos || last == first) return std::nullopt;
  std::string result(text.substr(0, begin + first));
  result += value;
  result += text.substr(begin + last);
  return result;
}

}  // namespace hyperloom::optimize
