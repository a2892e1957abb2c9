#include "inputs.h"

#include "loom/dialect/numeric.h"

namespace loom::lib {
namespace {

std::vector<double> values_of(const ops::Buffer& buffer) {
  const size_t width = scalar_bytes(buffer.element);
  std::vector<double> values(buffer.bytes.size() / width);
  for (size_t i = 0; i < values.size(); ++i) {
    ScalarValue value{buffer.element, 0};
    std::memcpy(&value.bits, buffer.bytes.data() + i * width, width);
    values[i] = is_float(buffer.element) ? to_double(value) : static_cast<double>(as_signed(value));
  }
  return values;
}

void put(ops::Buffer& buffer, size_t byte, ScalarValue value) {
  std::memcpy(buffer.bytes.data() + byte, &value.bits, scalar_bytes(value.kind));
}

}  // namespace

double Inputs::number(ScalarKind element) {
  if (with_specials_ && below(40) == 0) {
    const double large = element == ScalarKind::F16 ? 2000 : 1e15;
    // The instruction for pairs of bf16 takes denormals for zero.
    const double least = element == ScalarKind::F16 ? 6e-8 : element == ScalarKind::F32 ? 1e-45 : 0;
    const double specials[] = {kNan, kInfinity, -kInfinity, -0.0, least, -least, large, -large};
    return specials[below(std::size(specials))];
  }
  return (static_cast<double>(below(127)) - 63) / 32;
}

Numbers Inputs::numbers(ScalarKind element, size_t count) {
  Numbers made{ops::zeros(element, count), {}};
  for (size_t i = 0; i < count; ++i) {
    put(made.buffer, i * scalar_bytes(element), from_double(element, number(element)));
  }
  made.values = values_of(made.buffer);
  return made;
}

Numbers Inputs::anything(ScalarKind element, size_t count) {
  if (!with_specials_) return numbers(element, count);
  Numbers made{ops::special_floats(element, count, random_()), {}};
  made.values = values_of(made.buffer);
  return made;
}

Numbers Inputs::bytes(size_t count) {
  Numbers made{ops::noise(ScalarKind::I8, count, random_()), {}};
  for (std::byte& byte : made.buffer.bytes) {
    if (below(8) == 0) byte = below(2) == 0 ? std::byte{0x80} : std::byte{0x7f};
  }
  made.values = values_of(made.buffer);
  return made;
}

Numbers Inputs::blocks(size_t weights, bool nibbles) {
  const size_t size = nibbles ? 18 : 34;
  Numbers made{ops::noise(ScalarKind::I8, weights / 32 * size, random_()), {}};
  for (size_t b = 0; b < weights / 32; ++b) {
    const ScalarValue scale = from_double(ScalarKind::F16, number(ScalarKind::F16));
    put(made.buffer, b * size, scale);
    const std::byte* const codes = made.buffer.bytes.data() + b * size + 2;
    for (size_t i = 0; i < 32; ++i) {
      const auto byte = static_cast<uint8_t>(codes[nibbles ? i % 16 : i]);
      const int code = !nibbles ? static_cast<int8_t>(byte)
                       : i < 16 ? (byte & 15) - 8
                                : (byte >> 4) - 8;
      made.values.push_back(to_double(scale) * code);
    }
  }
  return made;
}

}  // namespace loom::lib
