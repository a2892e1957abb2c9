#include "loom/runtime/parameters/generate.h"

#include <fmt/format.h>

#include <charconv>
#include <utility>

#include "loom/runtime/parameters/array_text.h"

namespace loom {
namespace {

constexpr uint64_t kMostNames = 1'000'000;
// Files are built in memory; more than this is a slip of the keyboard.
constexpr uint64_t kMostBytes = uint64_t{16} << 30;

std::unexpected<std::string> error(std::string text) { return std::unexpected(std::move(text)); }

template <class T>
std::optional<T> parse_number(std::string_view text) {
  T value{};
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
  if (parsed.ec != std::errc{} || parsed.ptr != text.data() + text.size()) return std::nullopt;
  return value;
}

// Splits "a:b:c" into exactly `parts.size()` pieces.
bool split(std::string_view text, std::span<std::string_view> parts) {
  for (size_t i = 0; i < parts.size(); ++i) {
    const size_t end = text.find(':');
    const bool last = i + 1 == parts.size();
    if (last != (end == std::string_view::npos)) return false;
    parts[i] = text.substr(0, end);
    if (!last) text.remove_prefix(end + 1);
  }
  return true;
}

std::expected<void, std::string> parse_spec(std::string_view spec, ArrayRecipe& recipe) {
  if (spec.starts_with("iota:")) {
    std::string_view parts[3];
    if (!split(spec, parts)) return error(fmt::format("'{}' is not iota:START:STEP", spec));
    recipe.kind = ArrayRecipe::Kind::Iota;
    recipe.first = parts[1];
    recipe.second = parts[2];
  } else if (spec.starts_with("random:")) {
    std::string_view parts[4];
    if (!split(spec, parts)) return error(fmt::format("'{}' is not random:SEED:LO:HI", spec));
    const auto seed = parse_number<uint64_t>(parts[1]);
    if (!seed) return error(fmt::format("the seed '{}' is not an unsigned integer", parts[1]));
    recipe.kind = ArrayRecipe::Kind::Random;
    recipe.seed = *seed;
    recipe.first = parts[2];
    recipe.second = parts[3];
  } else if (spec.starts_with('@')) {
    recipe.kind = ArrayRecipe::Kind::File;
    recipe.literal = spec.substr(1);
  } else {
    recipe.literal = spec;
  }
  return {};
}

struct Range {
  uint64_t first = 0;
  uint64_t last = 0;
};

// Text and ranges alternate: texts[0] ranges[0] texts[1] ... texts[n].
struct Pattern {
  std::vector<std::string> texts;
  std::vector<Range> ranges;
};

// `body` is what stands between braces; nothing when it is no range, which leaves it as text.
std::optional<Range> parse_range(std::string_view body) {
  const size_t dots = body.find("..");
  if (dots == std::string_view::npos) return std::nullopt;
  const auto first = parse_number<uint64_t>(body.substr(0, dots));
  const auto last = parse_number<uint64_t>(body.substr(dots + 2));
  if (!first || !last) return std::nullopt;
  return Range{*first, *last};
}

Pattern parse_pattern(std::string_view text) {
  Pattern pattern;
  std::string plain;
  while (!text.empty()) {
    const size_t close = text.front() == '{' ? text.find('}') : std::string_view::npos;
    if (close != std::string_view::npos) {
      if (const auto range = parse_range(text.substr(1, close - 1))) {
        pattern.texts.push_back(std::exchange(plain, {}));
        pattern.ranges.push_back(*range);
        text.remove_prefix(close + 1);
        continue;
      }
    }
    plain.push_back(text.front());
    text.remove_prefix(1);
  }
  pattern.texts.push_back(std::move(plain));
  return pattern;
}

__extension__ typedef __int128 Wide;

struct Interval {
  Wide low;
  Wide high;
};

// What a literal of this integer type may be.
Interval interval_of(ElementType element) {
  if (element == ElementType::I1) return {0, 1};
  const unsigned bits = 8 * static_cast<unsigned>(element_size(element));
  return {is_unsigned(element) ? 0 : -(Wide{1} << (bits - 1)), (Wide{1} << bits) - 1};
}

// Numbers of an iota or random word as 128-bit integers, so that no sum of them overflows.
std::optional<Wide> parse_wide(std::string_view text) {
  const bool negative = text.starts_with('-');
  if (negative) text.remove_prefix(1);
  const auto magnitude = parse_number<uint64_t>(text);
  if (!magnitude) return std::nullopt;
  return negative ? -static_cast<Wide>(*magnitude) : static_cast<Wide>(*magnitude);
}

std::expected<void, std::string> fill_integers(const ArrayRecipe& recipe, ElementType element,
                                               uint64_t count, std::byte* out) {
  const auto first = parse_wide(recipe.first);
  const auto second = parse_wide(recipe.second);
  if (!first || !second) {
    return error(fmt::format("'{}' is not an integer as {} needs it",
                             first ? recipe.second : recipe.first, element_name(element)));
  }
  const Interval interval = interval_of(element);
  const bool is_iota = recipe.kind == ArrayRecipe::Kind::Iota;
  // Both ends, between which all values lie. Counts stay below 2^34 and numbers below 2^64.
  const Wide end = is_iota && count != 0 ? *first + *second * static_cast<Wide>(count - 1)
                   : is_iota             ? *first
                                         : *second;
  for (const Wide value : {*first, end}) {
    if (value < interval.low || value > interval.high) {
      return error(fmt::format("the values leave the range of {}", element_name(element)));
    }
  }
  if (!is_iota && *first > *second) return error("LO is above HI");
  if (!is_iota && *second - *first >= Wide{1} << 64)
    return error("LO to HI is more than 2^64 values");
  const size_t size = element_size(element);
  const auto span = static_cast<uint64_t>(*second - *first) + 1;  // 0 stands for 2^64
  for (uint64_t i = 0; i < count; ++i) {
    const uint64_t word = is_iota ? 0 : random_word(recipe.seed, i);
    const Wide value = is_iota ? *first + *second * static_cast<Wide>(i)
                               : *first + static_cast<Wide>(span == 0 ? word : word % span);
    store_integer(element, static_cast<int64_t>(static_cast<uint64_t>(value)), out + i * size);
  }
  return {};
}

std::expected<void, std::string> fill_floats(const ArrayRecipe& recipe, ElementType element,
                                             uint64_t count, std::byte* out) {
  const auto first = parse_number<double>(recipe.first);
  const auto second = parse_number<double>(recipe.second);
  if (!first || !second) {
    return error(fmt::format("'{}' is not a number", first ? recipe.second : recipe.first));
  }
  const bool is_iota = recipe.kind == ArrayRecipe::Kind::Iota;
  if (!is_iota && !(*first <= *second)) return error("LO is above HI");
  const size_t size = element_size(element);
  for (uint64_t i = 0; i < count; ++i) {
    const double value =
        is_iota ? *first + static_cast<double>(i) * *second
                : *first + (*second - *first) *
                               (static_cast<double>(random_word(recipe.seed, i) >> 11) * 0x1p-53);
    store_float(element, value, out + i * size);
  }
  return {};
}

}  // namespace

uint64_t random_word(uint64_t seed, uint64_t counter) {
  uint64_t x = seed + (counter + 1) * 0x9e3779b97f4a7c15ull;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

std::expected<ArrayRecipe, std::string> parse_recipe(std::string_view word) {
  ArrayRecipe recipe;
  std::string_view rest = word;
  // A path behind '@' may hold a '=' of its own.
  const size_t equals = word.substr(0, word.find('@')).find('=');
  if (equals != std::string_view::npos) {
    recipe.pattern = word.substr(0, equals);
    rest = word.substr(equals + 1);
    if (recipe.pattern.empty()) return error(fmt::format("'{}' has no name before '='", word));
  }
  if (!rest.starts_with('@')) {
    const size_t colon = rest.find(':');
    if (colon == std::string_view::npos) {
      return error(fmt::format("'{}' is not NAME=TYPE:SPEC", word));
    }
    auto type = parse_array_type(rest.substr(0, colon));
    if (!type) return error(fmt::format("'{}': {}", word, type.error()));
    recipe.type = std::move(*type);
    rest.remove_prefix(colon + 1);
  }
  if (auto parsed = parse_spec(rest, recipe); !parsed) return std::unexpected(parsed.error());
  return recipe;
}

std::expected<std::vector<std::string>, std::string> expand_pattern(std::string_view text) {
  const Pattern pattern = parse_pattern(text);
  uint64_t count = 1;
  for (const Range& range : pattern.ranges) {
    if (range.first > range.last) {
      return error(fmt::format("the range {{{}..{}}} runs backwards", range.first, range.last));
    }
    const uint64_t length = range.last - range.first;
    if (length >= kMostNames || (length + 1) * count > kMostNames) {
      return error(fmt::format("'{}' stands for more than {} names", text, kMostNames));
    }
    count *= length + 1;
  }
  std::vector<std::string> names(count);
  for (uint64_t i = 0; i < count; ++i) {
    std::vector<uint64_t> values(pattern.ranges.size());
    uint64_t rest = i;
    for (size_t axis = values.size(); axis-- > 0;) {
      const Range& range = pattern.ranges[axis];
      const uint64_t length = range.last - range.first + 1;
      values[axis] = range.first + rest % length;
      rest /= length;
    }
    names[i] = pattern.texts[0];
    for (size_t axis = 0; axis < values.size(); ++axis) {
      names[i] += fmt::format("{}{}", values[axis], pattern.texts[axis + 1]);
    }
  }
  return names;
}

std::expected<void, std::string> GeneratedArrays::add(const ArrayRecipe& recipe,
                                                      Diagnostics& diagnostics) {
  auto names = expand_pattern(recipe.pattern);
  if (!names) return std::unexpected(names.error());
  if (recipe.kind == ArrayRecipe::Kind::File) {
    auto file = ArrayFile::open(recipe.literal, recipe.type, diagnostics);
    if (!file) return {};
    const ArrayFile& kept = files_.emplace_back(std::move(*file));
    for (std::string& name : *names) sources_.push_back({std::move(name), kept.type, kept.bytes});
    return {};
  }
  const ArrayType& type = *recipe.type;
  const auto size = type.byte_size();
  if (!size || *size > kMostBytes || *size * names->size() > kMostBytes - total_) {
    return error(
        fmt::format("the arrays of '{}' need more than {} GiB", recipe.pattern, kMostBytes >> 30));
  }
  total_ += *size * names->size();
  std::vector<std::byte> bytes(*size * names->size());
  const uint64_t count = bytes.size() / element_size(type.element);
  auto filled = recipe.kind == ArrayRecipe::Kind::Value
                    ? fill_literal(type.element, recipe.literal, bytes)
                : is_float(type.element) ? fill_floats(recipe, type.element, count, bytes.data())
                                         : fill_integers(recipe, type.element, count, bytes.data());
  if (!filled) return filled;
  const std::span<const std::byte> kept = storage_.emplace_back(std::move(bytes));
  for (size_t i = 0; i < names->size(); ++i) {
    sources_.push_back({std::move((*names)[i]), type, kept.subspan(i * *size, *size)});
  }
  return {};
}

}  // namespace loom
