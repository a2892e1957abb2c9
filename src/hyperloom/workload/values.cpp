#include "hyperloom/workload/values.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>

namespace hyperloom::workload {
namespace {

using loom::ElementType;

// The finalizer of SplitMix64 over a counter.
uint64_t word_at(uint64_t seed, uint64_t counter) {
  uint64_t x = seed + (counter + 1) * 0x9e3779b97f4a7c15ull;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

// What follows from the element type's range alone.
struct Extremes {
  double largest;
  double denormal;
};
Extremes extremes_of(ElementType element) {
  switch (element) {
    case ElementType::F64:
      return {std::numeric_limits<double>::max(), std::numeric_limits<double>::denorm_min()};
    case ElementType::F16:
      return {65504, 0x1p-24};
    case ElementType::BF16:
      return {0x1.fep127, 0x1p-133};
    case ElementType::F8E4M3:
      return {448, 0x1p-9};
    case ElementType::F8E5M2:
      return {57344, 0x1p-16};
    default:
      return {std::numeric_limits<float>::max(), std::numeric_limits<float>::denorm_min()};
  }
}

// Nothing extreme in three of four elements, so that what is in the other one shows.
bool store_adversarial(ElementType element, uint64_t word, double low, double high, std::byte* at) {
  if ((word & 3) != 0) return false;
  const uint64_t which = (word >> 2) % 8;
  if (!loom::is_float(element)) {
    if (which > 3) return false;
    const std::array<double, 4> values = {low, high, 0, 1};
    const double value = std::clamp(values[which], low, high);
    loom::store_integer(element, static_cast<int64_t>(value), at);
    return true;
  }
  const Extremes extremes = extremes_of(element);
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const std::array<double, 8> values = {0,
                                        -0.0,
                                        kInfinity,
                                        -kInfinity,
                                        std::numeric_limits<double>::quiet_NaN(),
                                        extremes.denormal,
                                        extremes.largest,
                                        -extremes.largest};
  loom::store_float(element, values[which], at);
  return true;
}

void store_random(ElementType element, uint64_t word, double low, double high, std::byte* at) {
  if (loom::is_float(element)) {
    const double unit = static_cast<double>(word >> 11) / 0x1p53;
    loom::store_float(element, low + (high - low) * unit, at);
    return;
  }
  const auto first = static_cast<int64_t>(std::ceil(low));
  const auto last = static_cast<int64_t>(std::floor(high));
  const uint64_t width = static_cast<uint64_t>(last) - static_cast<uint64_t>(first) + 1;
  const uint64_t step = width == 0 ? word : word % width;
  loom::store_integer(element, static_cast<int64_t>(static_cast<uint64_t>(first) + step), at);
}

std::string element_place(const BindingSpec& spec, uint64_t index) {
  return fmt::format("output %{}[{}]", spec.name, index);
}

}  // namespace

void fill_values(const BindingSpec& spec, uint64_t ordinal, const Draw& draw,
                 std::span<const std::byte> file, std::span<std::byte> bytes) {
  const bool stated = !spec.fill.empty() || !file.empty();
  if (spec.fixed || (!draw.seeded && stated)) {
    if (!file.empty()) {
      std::memcpy(bytes.data(), file.data(), std::min(bytes.size(), file.size()));
      return;
    }
    if (!spec.fill.empty()) {
      // The literal was checked when the workload was read.
      (void)loom::fill_literal(spec.type.element, spec.fill, bytes);
      return;
    }
  }
  const uint64_t stream = ordinal * 4 + (draw.adversarial ? 1 : 0) + (draw.held_out ? 2 : 0);
  const uint64_t seed = word_at(spec.fixed ? 0 : draw.seed, stream);
  const size_t size = loom::element_size(spec.type.element);
  for (uint64_t i = 0; i < bytes.size() / size; ++i) {
    std::byte* const at = bytes.data() + i * size;
    const bool extreme =
        draw.adversarial && !spec.fixed &&
        store_adversarial(spec.type.element, word_at(~seed, i), spec.low, spec.high, at);
    if (!extreme) store_random(spec.type.element, word_at(seed, i), spec.low, spec.high, at);
  }
}

Tolerance tolerance_of(ElementType element) {
  switch (element) {
    case ElementType::F64:
      return {1e-12, 1e-9};
    case ElementType::F32:
      return {1e-6, 1e-4};
    case ElementType::F16:
      return {1e-3, 1e-2};
    case ElementType::BF16:
      return {1e-2, 2e-2};
    case ElementType::F8E4M3:
    case ElementType::F8E5M2:
      return {0.1, 0.15};
    default:
      return {};
  }
}

void compare_output(const BindingSpec& spec, bool adversarial, std::span<const std::byte> found,
                    std::span<const std::byte> expected, Agreement& agreement, Count& count) {
  const ElementType element = spec.type.element;
  const size_t size = loom::element_size(element);
  const uint64_t elements = expected.size() / size;
  const Tolerance tolerance = tolerance_of(element);
  const bool floats = loom::is_float(element);
  double scale = 1;
  for (uint64_t i = 0; floats && !adversarial && i < elements; ++i) {
    const double value = std::abs(loom::load_float(element, expected.data() + i * size));
    if (std::isfinite(value)) scale = std::max(scale, value);
  }
  // Elements that both sides left alone are not results.
  const auto untouched = [&](const std::byte* at, std::byte poison) {
    return std::all_of(at, at + size, [&](std::byte byte) { return byte == poison; });
  };
  for (uint64_t i = 0; i < elements; ++i) {
    const std::byte* const a = found.data() + i * size;
    const std::byte* const b = expected.data() + i * size;
    if (untouched(a, kPoison) && untouched(b, kReferencePoison)) continue;
    ++count.elements;
    if (std::memcmp(a, b, size) == 0) {
      ++count.within;
      continue;
    }
    double error = std::numeric_limits<double>::infinity();
    bool within = false;
    if (floats) {
      const double x = loom::load_float(element, a), y = loom::load_float(element, b);
      const double largest = std::max(std::abs(x), std::abs(y));
      within = x == y || (std::isnan(x) && std::isnan(y));
      if (within) error = 0;
      if (!within && std::isfinite(x) && std::isfinite(y)) {
        error = std::abs(x - y) / largest;
        within = std::abs(x - y) <= tolerance.absolute * scale + tolerance.relative * largest;
      }
    }
    count.within += within ? 1 : 0;
    const bool first_wrong = !within && agreement.correct;
    if (first_wrong || (agreement.correct && error > agreement.worst_error)) {
      agreement.where = element_place(spec, i);
    }
    agreement.worst_error = std::max(agreement.worst_error, error);
    if (!within) agreement.correct = false;
  }
}

}  // namespace hyperloom::workload
