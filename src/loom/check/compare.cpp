#include "loom/check/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "loom/check/tensor.h"

namespace loom::check {
namespace {

// Representations of a format in the order of their values; both zeros are 0.
int64_t ordinal(ScalarValue value) {
  const uint64_t sign = uint64_t{1} << (scalar_bits(value.kind) - 1);
  const auto magnitude = static_cast<int64_t>(value.bits & (sign - 1));
  return (value.bits & sign) != 0 ? -magnitude : magnitude;
}

bool is_nan_value(ScalarValue value) { return is_float(value.kind) && is_nan(value); }

double difference(ScalarValue a, ScalarValue b) {
  if (is_float(a.kind)) return std::abs(to_double(a) - to_double(b));
  const auto x = static_cast<uint64_t>(as_signed(a));
  const auto y = static_cast<uint64_t>(as_signed(b));
  return static_cast<double>(as_signed(a) > as_signed(b) ? x - y : y - x);
}

bool equal_by_value(ScalarValue a, ScalarValue b) {
  if (is_nan_value(a) || is_nan_value(b)) return false;
  return a.bits == b.bits || (is_float(a.kind) && to_double(a) == to_double(b));
}

// What the rule allows between the two; negative where no distance is enough.
double allowance(ScalarValue expected, const Tolerance& rule) {
  if (rule.rule != Tolerance::Rule::Close) return 0;
  return rule.absolute + rule.relative * std::abs(to_double(expected));
}

bool holds(ScalarValue a, ScalarValue e, const Tolerance& rule) {
  switch (rule.rule) {
    case Tolerance::Rule::Bitwise:
      return a.bits == e.bits;
    case Tolerance::Rule::Equal:
      return equal_by_value(a, e);
    case Tolerance::Rule::Ulp:
      if (!is_float(a.kind)) return difference(a, e) <= static_cast<double>(rule.ulps);
      if (is_nan(a) || is_nan(e)) return is_nan(a) && is_nan(e);
      return ulp_distance(a, e) <= rule.ulps;
    case Tolerance::Rule::Close:
      break;
  }
  if (is_nan(a) || is_nan(e)) return rule.same_nan && is_nan(a) && is_nan(e);
  if (std::isinf(to_double(a)) || std::isinf(to_double(e))) return to_double(a) == to_double(e);
  return difference(a, e) <= allowance(e, rule);
}

Mismatch mismatch_at(const Elements& actual, const Elements& expected, uint64_t index) {
  Mismatch made{.index = index, .actual = actual.at(index), .expected = expected.at(index)};
  if (is_nan_value(made.actual) || is_nan_value(made.expected)) return made;
  if (is_float(made.actual.kind)) made.ulps = ulp_distance(made.actual, made.expected);
  const double size = is_float(made.expected.kind)
                          ? std::abs(to_double(made.expected))
                          : std::abs(static_cast<double>(as_signed(made.expected)));
  const double relative = difference(made.actual, made.expected) / size;
  if (std::isfinite(relative)) made.relative = relative;
  return made;
}

double excess(ScalarValue a, ScalarValue e, const Tolerance& rule) {
  const double far = std::numeric_limits<double>::infinity();
  if (is_nan_value(a) || is_nan_value(e)) return far;
  const double beyond = difference(a, e) - allowance(e, rule);
  return std::isnan(beyond) ? far : beyond;
}

}  // namespace

Elements::Elements(const CaseValue& value, ScalarKind kind, std::vector<int64_t> shape)
    : value_(value), kind_(kind), shape_(std::move(shape)) {
  const auto* tensor = std::get_if<std::span<std::byte>>(&value_);
  size_ =
      tensor != nullptr ? element_count(*tensor, kind_) : std::get<LaneValues>(value_).lanes.size();
}

ScalarValue Elements::at(uint64_t index) const {
  if (const auto* lanes = std::get_if<LaneValues>(&value_)) return lanes->at(index);
  return load(std::get<std::span<std::byte>>(value_), kind_, index);
}

std::span<const std::byte> Elements::bytes() const {
  const auto* tensor = std::get_if<std::span<std::byte>>(&value_);
  return tensor != nullptr ? *tensor : std::span<const std::byte>();
}

std::string Elements::place(uint64_t index) const {
  if (shape_.empty()) return "";
  std::vector<uint64_t> places(shape_.size());
  for (size_t axis = shape_.size(); axis-- > 0;) {
    const auto extent = static_cast<uint64_t>(shape_[axis]);
    places[axis] = index % extent;
    index /= extent;
  }
  return fmt::format("[{}]", fmt::join(places, ", "));
}

Comparison compare(const Elements& actual, const Elements& expected, const Tolerance& tolerance) {
  Comparison made;
  made.elements = actual.size();
  if (actual.bytes().size() == expected.bytes().size() && !actual.bytes().empty() &&
      tolerance.rule == Tolerance::Rule::Bitwise &&
      std::ranges::equal(actual.bytes(), expected.bytes())) {
    return made;
  }
  double most = 0;
  for (uint64_t i = 0; i < made.elements; ++i) {
    const ScalarValue a = actual.at(i);
    const ScalarValue e = expected.at(i);
    if (holds(a, e, tolerance)) continue;
    const double far = excess(a, e, tolerance);
    if (made.mismatches == 0) made.first = mismatch_at(actual, expected, i);
    if (made.mismatches == 0 || far > most) {
      made.worst = mismatch_at(actual, expected, i);
      most = far;
    }
    ++made.mismatches;
  }
  return made;
}

uint64_t ulp_distance(ScalarValue a, ScalarValue b) {
  const int64_t x = ordinal(a);
  const int64_t y = ordinal(b);
  return x > y ? static_cast<uint64_t>(x) - static_cast<uint64_t>(y)
               : static_cast<uint64_t>(y) - static_cast<uint64_t>(x);
}

std::vector<uint64_t> ranking(const Elements& values, uint64_t top) {
  std::vector<uint64_t> order(values.size());
  std::iota(order.begin(), order.end(), uint64_t{0});
  const auto key = [&](uint64_t i) {
    const ScalarValue value = values.at(i);
    return is_float(value.kind) ? to_double(value) : static_cast<double>(as_signed(value));
  };
  const auto before = [&](uint64_t a, uint64_t b) {
    const double x = key(a);
    const double y = key(b);
    if (std::isnan(x) != std::isnan(y)) return std::isnan(y);
    if (!std::isnan(x) && x != y) return x > y;
    return a < b;
  };
  const auto count = static_cast<ptrdiff_t>(std::min<uint64_t>(top, order.size()));
  std::ranges::partial_sort(order, order.begin() + count, before);
  order.resize(static_cast<size_t>(count));
  return order;
}

std::string value_text(ScalarValue value) {
  if (!is_float(value.kind)) {
    return value.kind == ScalarKind::I1 ? (value.bits != 0 ? "true" : "false")
                                        : fmt::to_string(as_signed(value));
  }
  const double number = to_double(value);
  const unsigned digits = scalar_bytes(value.kind) * 2;
  const std::string bits = fmt::format("(0x{:0{}x})", value.bits, digits);
  if (std::isnan(number)) return "nan " + bits;
  if (value.kind == ScalarKind::F32) {
    return fmt::format("{} {}", static_cast<float>(number), bits);
  }
  return fmt::format("{} {}", number, bits);
}

std::string mismatch_text(const Mismatch& mismatch) {
  std::string text = fmt::format("actual {}, expected {}", value_text(mismatch.actual),
                                 value_text(mismatch.expected));
  const char* before = ": ";
  if (mismatch.ulps) {
    text += fmt::format("{}{} ulp", before, *mismatch.ulps);
    before = ", ";
  }
  if (mismatch.relative) text += fmt::format("{}relative {:.3g}", before, *mismatch.relative);
  return text;
}

}  // namespace loom::check
