#include "loom/check/tensor.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "loom/runtime/parameters/generate.h"

namespace loom::check {
namespace {

constexpr uint64_t kGuard = Buffer::kAlignment;
constexpr auto kGuardByte = std::byte{0xA5};
constexpr uint64_t kBlock = uint64_t{1} << 20;
constexpr uint64_t kMost = uint64_t{1} << 40;

uint64_t rounded(uint64_t bytes) { return (bytes + kGuard - 1) / kGuard * kGuard; }

bool is_guard(std::span<const std::byte> bytes) {
  return std::ranges::all_of(bytes, [](std::byte byte) { return byte == kGuardByte; });
}

// Calls f(index) for each element and stores the bits that it returns.
template <class Word, class F>
void each_word(std::span<std::byte> tensor, F&& f) {
  const uint64_t count = tensor.size() / sizeof(Word);
  for (uint64_t i = 0; i < count; ++i) {
    const auto word = static_cast<Word>(f(i));
    std::memcpy(tensor.data() + i * sizeof(Word), &word, sizeof(Word));
  }
}

template <class F>
void each(std::span<std::byte> tensor, ScalarKind kind, F&& f) {
  switch (scalar_bytes(kind)) {
    case 1:
      return each_word<uint8_t>(tensor, f);
    case 2:
      return each_word<uint16_t>(tensor, f);
    case 4:
      return each_word<uint32_t>(tensor, f);
    default:
      return each_word<uint64_t>(tensor, f);
  }
}

// The common formats do without the general rounding.
uint64_t float_bits(ScalarKind kind, double value) {
  if (kind == ScalarKind::F64) return std::bit_cast<uint64_t>(value);
  if (kind == ScalarKind::F32) return std::bit_cast<uint32_t>(static_cast<float>(value));
  return from_double(kind, value).bits;
}

}  // namespace

std::optional<std::span<std::byte>> Arena::take(uint64_t bytes) {
  if (bytes > kMost) return std::nullopt;
  const uint64_t needed = kGuard + rounded(bytes) + kGuard;
  while (block_ < blocks_.size() && used_ + needed > blocks_[block_].bytes().size()) {
    ++block_;
    used_ = 0;
  }
  if (block_ == blocks_.size()) {
    auto block = Buffer::allocate(std::max(kBlock, needed));
    if (!block) return std::nullopt;
    blocks_.push_back(std::move(*block));
  }
  const std::span<std::byte> room = blocks_[block_].bytes().subspan(used_, needed);
  used_ += kGuard + rounded(bytes);
  const std::span<std::byte> tensor = room.subspan(kGuard, bytes);
  std::memset(room.data(), static_cast<int>(kGuardByte), kGuard);
  std::memset(tensor.data() + bytes, static_cast<int>(kGuardByte), needed - kGuard - bytes);
  taken_.push_back(tensor);
  return tensor;
}

void Arena::reset() {
  block_ = 0;
  used_ = 0;
  taken_.clear();
}

std::optional<size_t> Arena::damaged() const {
  for (size_t i = 0; i < taken_.size(); ++i) {
    const uint64_t behind = rounded(taken_[i].size()) + kGuard - taken_[i].size();
    if (!is_guard({taken_[i].data() - kGuard, kGuard}) ||
        !is_guard({taken_[i].data() + taken_[i].size(), behind})) {
      return i;
    }
  }
  return std::nullopt;
}

uint64_t element_count(std::span<const std::byte> tensor, ScalarKind kind) {
  return tensor.size() / scalar_bytes(kind);
}

ScalarValue load(std::span<const std::byte> tensor, ScalarKind kind, uint64_t index) {
  uint64_t bits = 0;
  const unsigned size = scalar_bytes(kind);
  std::memcpy(&bits, tensor.data() + index * size, size);
  return from_bits(kind, bits);
}

void store(std::span<std::byte> tensor, ScalarKind kind, uint64_t index, ScalarValue value) {
  const unsigned size = scalar_bytes(kind);
  std::memcpy(tensor.data() + index * size, &value.bits, size);
}

void fill(std::span<std::byte> tensor, ScalarKind kind, ScalarValue value) {
  each(tensor, kind, [&](uint64_t) { return value.bits; });
}

void iota(std::span<std::byte> tensor, ScalarKind kind, ScalarValue offset, ScalarValue step,
          uint64_t period) {
  const auto place = [period](uint64_t i) { return period == 0 ? i : i % period; };
  if (!is_float(kind)) {
    each(tensor, kind,
         [&](uint64_t i) { return from_bits(kind, offset.bits + step.bits * place(i)).bits; });
    return;
  }
  const double first = to_double(offset);
  const double rise = to_double(step);
  each(tensor, kind,
       [&](uint64_t i) { return float_bits(kind, first + rise * static_cast<double>(place(i))); });
}

ScalarValue next_below(ScalarValue value) {
  const uint64_t sign = uint64_t{1} << (scalar_bits(value.kind) - 1);
  if ((value.bits & ~sign) == 0) return {value.kind, sign | 1};
  return {value.kind, (value.bits & sign) != 0 ? value.bits + 1 : value.bits - 1};
}

void random_floats(std::span<std::byte> tensor, ScalarKind kind, uint64_t seed, ScalarValue lower,
                   ScalarValue upper) {
  const double low = to_double(lower);
  const double high = to_double(upper);
  const double width = high - low;
  const double below = lower == upper ? low : to_double(next_below(upper));
  const bool wide = std::isinf(width);
  each(tensor, kind, [&](uint64_t i) {
    const double u = static_cast<double>(random_word(seed, i) >> 11) * 0x1p-53;
    const double value = wide ? low * (1 - u) + high * u : low + width * u;
    const uint64_t bits = float_bits(kind, value);
    return to_double({kind, bits}) > below ? float_bits(kind, below) : bits;
  });
}

void random_integers(std::span<std::byte> tensor, ScalarKind kind, uint64_t seed, int64_t lower,
                     int64_t upper) {
  const auto low = static_cast<uint64_t>(lower);
  const uint64_t values = static_cast<uint64_t>(upper) - low + 1;  // 0: all of 64 bits
  each(tensor, kind, [&](uint64_t i) {
    const uint64_t word = random_word(seed, i);
    return from_bits(kind, low + (values == 0 ? word : word % values)).bits;
  });
}

}  // namespace loom::check
