#include "loom/runtime/parameters/array_text.h"

#include <fmt/format.h>
#include <locale.h>

#include <bit>
#include <cfenv>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>

#include "loom/base/check.h"
#include "loom/base/float_format.h"

namespace loom {
namespace {

static_assert(std::endian::native == std::endian::little,
              "elements are stored as they are in memory");

template <class T>
void store(T value, std::byte* at) {
  std::memcpy(at, &value, sizeof value);
}
template <class T>
T load(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

// Of the floats that the host has no type for.
const FloatFormat& format_of(ElementType element) {
  switch (element) {
    case ElementType::F8E4M3:
      return kFormatF8E4M3;
    case ElementType::F8E5M2:
      return kFormatF8E5M2;
    case ElementType::F16:
      return kFormatF16;
    default:
      LOOM_CHECK(element == ElementType::BF16, "the host has a type for it");
      return kFormatBF16;
  }
}

// Restores the caller's rounding mode.
class RoundingMode {
 public:
  explicit RoundingMode(int mode) : saved_(std::fegetround()) { std::fesetround(mode); }
  RoundingMode(const RoundingMode&) = delete;
  RoundingMode& operator=(const RoundingMode&) = delete;
  ~RoundingMode() { std::fesetround(saved_); }

 private:
  int saved_;
};

double parse_with(const std::string& text, int mode) {
  static const locale_t locale = ::newlocale(LC_ALL_MASK, "C", nullptr);
  const RoundingMode rounding(mode);
  return ::strtod_l(text.c_str(), nullptr, locale);
}

// Rounds to odd: an inexact result has its last bit set. A second rounding to any format with at
// most 51 mantissa bits then gives what one rounding of the text would.
double parse_to_odd(const std::string& text) {
  const double toward_zero = parse_with(text, FE_TOWARDZERO);
  const double away = parse_with(text, std::signbit(toward_zero) ? FE_DOWNWARD : FE_UPWARD);
  if (toward_zero == away) return toward_zero;
  return std::bit_cast<double>(std::bit_cast<uint64_t>(toward_zero) | 1);
}

std::unexpected<std::string> bad_literal(std::string_view literal, ElementType element) {
  return std::unexpected(fmt::format("'{}' is not a value of {}", literal, element_name(element)));
}

std::expected<void, std::string> store_float_literal(ElementType element, std::string_view literal,
                                                     std::byte* at) {
  std::string_view digits = literal;
  if (digits.starts_with('+') && !digits.starts_with("+-")) digits.remove_prefix(1);
  double nearest = 0;
  const char* begin = digits.data();
  const char* end = begin + digits.size();
  const auto parsed = std::from_chars(begin, end, nearest);
  if (parsed.ec == std::errc::invalid_argument || parsed.ptr != end) {
    return bad_literal(literal, element);
  }
  const std::string text(digits);
  if (element == ElementType::F64) {
    store(parse_with(text, FE_TONEAREST), at);
  } else {
    store_float(element, parse_to_odd(text), at);
  }
  return {};
}

std::expected<void, std::string> store_integer_literal(ElementType element,
                                                       std::string_view literal, std::byte* at) {
  std::string_view digits = literal;
  if (literal == "true" || literal == "false") digits = literal == "true" ? "1" : "0";
  const bool negative = digits.starts_with('-');
  if (negative || digits.starts_with('+')) digits.remove_prefix(1);
  int base = 10;
  if (digits.starts_with("0x") || digits.starts_with("0X")) {
    digits.remove_prefix(2);
    base = 16;
  }
  uint64_t magnitude = 0;
  const char* begin = digits.data();
  const char* end = begin + digits.size();
  const auto parsed = std::from_chars(begin, end, magnitude, base);
  if (parsed.ec == std::errc::invalid_argument || parsed.ptr != end) {
    return bad_literal(literal, element);
  }
  const unsigned bits =
      element == ElementType::I1 ? 1u : 8u * static_cast<unsigned>(element_size(element));
  const uint64_t highest = bits == 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1;
  const uint64_t lowest = is_unsigned(element) ? 0 : uint64_t{1} << (bits - 1);
  if (parsed.ec != std::errc{} || magnitude > (negative ? lowest : highest)) {
    return std::unexpected(
        fmt::format("'{}' is out of the range of {}", literal, element_name(element)));
  }
  store_integer(element, static_cast<int64_t>(negative ? 0 - magnitude : magnitude), at);
  return {};
}

int64_t to_integer(double value) {
  if (std::isnan(value)) return 0;
  if (value >= 0x1p63) return std::numeric_limits<int64_t>::max();
  if (value < -0x1p63) return std::numeric_limits<int64_t>::min();
  return static_cast<int64_t>(value);
}

}  // namespace

void store_float(ElementType element, double value, std::byte* at) {
  switch (element) {
    case ElementType::F64:
      return store(value, at);
    case ElementType::F32:
      return store(static_cast<float>(value), at);
    case ElementType::F16:
    case ElementType::BF16:
      return store(static_cast<uint16_t>(encode_float(format_of(element), value)), at);
    case ElementType::F8E4M3:
    case ElementType::F8E5M2:
      return store(static_cast<uint8_t>(encode_float(format_of(element), value)), at);
    case ElementType::U64:
      if (value >= 0x1p63) return store(static_cast<uint64_t>(value - 0x1p63) + (1ull << 63), at);
      return store(to_integer(value), at);
    default:
      return store_integer(element, to_integer(value), at);
  }
}

void store_integer(ElementType element, int64_t value, std::byte* at) {
  switch (element) {
    case ElementType::I1:
      return store(static_cast<uint8_t>(value != 0), at);
    case ElementType::I8:
    case ElementType::U8:
      return store(static_cast<uint8_t>(value), at);
    case ElementType::I16:
    case ElementType::U16:
      return store(static_cast<uint16_t>(value), at);
    case ElementType::I32:
    case ElementType::U32:
      return store(static_cast<uint32_t>(value), at);
    case ElementType::I64:
    case ElementType::U64:
      return store(value, at);
    case ElementType::F32:
      return store(static_cast<float>(value), at);
    case ElementType::F64:
      return store(static_cast<double>(value), at);
    default: {
      // A double of more than 53 bits would round twice; the low bits only matter as sticky ones.
      const uint64_t magnitude =
          value < 0 ? 0 - static_cast<uint64_t>(value) : static_cast<uint64_t>(value);
      const uint64_t sticky = (magnitude & 0xffff) != 0 ? 0x10000 : 0;
      const bool wide = (magnitude >> 53) != 0;
      const double rounded =
          static_cast<double>(wide ? (magnitude & ~uint64_t{0xffff}) | sticky : magnitude);
      return store_float(element, value < 0 ? -rounded : rounded, at);
    }
  }
}

double load_float(ElementType element, const std::byte* at) {
  switch (element) {
    case ElementType::F64:
      return load<double>(at);
    case ElementType::F32:
      return static_cast<double>(load<float>(at));
    case ElementType::F16:
    case ElementType::BF16:
      return decode_float(format_of(element), load<uint16_t>(at));
    case ElementType::F8E4M3:
    case ElementType::F8E5M2:
      return decode_float(format_of(element), load<uint8_t>(at));
    case ElementType::U64:
      return static_cast<double>(load<uint64_t>(at));
    default:
      return static_cast<double>(load_integer(element, at));
  }
}

int64_t load_integer(ElementType element, const std::byte* at) {
  switch (element) {
    case ElementType::I1:
      return load<uint8_t>(at) != 0 ? 1 : 0;
    case ElementType::I8:
      return load<int8_t>(at);
    case ElementType::U8:
      return load<uint8_t>(at);
    case ElementType::I16:
      return load<int16_t>(at);
    case ElementType::U16:
      return load<uint16_t>(at);
    case ElementType::I32:
      return load<int32_t>(at);
    case ElementType::U32:
      return load<uint32_t>(at);
    case ElementType::I64:
    case ElementType::U64:
      return load<int64_t>(at);
    default:
      return to_integer(load_float(element, at));
  }
}

std::expected<void, std::string> store_literal(ElementType element, std::string_view literal,
                                               std::byte* at) {
  return is_float(element) ? store_float_literal(element, literal, at)
                           : store_integer_literal(element, literal, at);
}

std::expected<void, std::string> fill_literal(ElementType element, std::string_view literal,
                                              std::span<std::byte> bytes) {
  const size_t size = element_size(element);
  LOOM_CHECK(bytes.size() % size == 0, "the buffer holds whole elements");
  std::byte value[8];
  if (auto stored = store_literal(element, literal, value); !stored) return stored;
  for (size_t i = 0; i < bytes.size(); i += size) std::memcpy(bytes.data() + i, value, size);
  return {};
}

std::string format_element(ElementType element, const std::byte* at) {
  if (element == ElementType::U64) return fmt::format("{}", load<uint64_t>(at));
  if (!is_float(element)) return fmt::format("{}", load_integer(element, at));
  const double value = load_float(element, at);
  if (std::isnan(value)) return "nan";
  if (element == ElementType::F64) return fmt::format("{}", value);
  if (element == ElementType::F32) return fmt::format("{}", static_cast<float>(value));
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  if (std::fabs(value) < 1e7 && value == std::trunc(value)) return fmt::format("{:.0f}", value);
  // Few digits suffice for few bits, so the shortest text is found by trying.
  std::string text;
  for (int digits = 1; digits <= 9; ++digits) {
    text = fmt::format("{:.{}g}", value, digits);
    std::byte again[8];
    if (store_literal(element, text, again) && std::memcmp(again, at, element_size(element)) == 0) {
      break;
    }
  }
  return text;
}

std::string format_array(const ArrayType& type, std::span<const std::byte> bytes) {
  const auto size = type.byte_size();
  LOOM_CHECK(size && *size <= bytes.size(), "the buffer holds the array");
  const size_t step = element_size(type.element);
  if (type.dims.empty()) return format_element(type.element, bytes.data());
  const uint64_t count = *size / step;
  if (count == 0) return "[]";
  const size_t rank = type.dims.size();
  std::string out(rank, '[');
  for (uint64_t i = 0; i < count; ++i) {
    out += format_element(type.element, bytes.data() + i * step);
    // How many of the innermost axes end with this element.
    size_t ended = 0;
    uint64_t rest = i + 1;
    while (ended < rank && rest % type.dims[rank - 1 - ended] == 0) {
      rest /= type.dims[rank - 1 - ended];
      ++ended;
    }
    out.append(ended, ']');
    if (i + 1 == count) break;
    out += ended == 0 ? ", " : ",\n";
    if (ended != 0) out.append(rank - ended, ' ').append(ended, '[');
  }
  return out;
}

}  // namespace loom
