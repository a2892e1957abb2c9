#include "loom/runtime/parameters/array_type.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <limits>

namespace loom {
namespace {

enum class Kind : uint8_t { Signed, Unsigned, Float };

struct ElementRow {
  std::string_view name;
  uint8_t size;
  Kind kind;
};

// In the order of ElementType.
constexpr std::array<ElementRow, kElementTypeCount> kElements = {{
    {"i1", 1, Kind::Unsigned},
    {"i8", 1, Kind::Signed},
    {"i16", 2, Kind::Signed},
    {"i32", 4, Kind::Signed},
    {"i64", 8, Kind::Signed},
    {"u8", 1, Kind::Unsigned},
    {"u16", 2, Kind::Unsigned},
    {"u32", 4, Kind::Unsigned},
    {"u64", 8, Kind::Unsigned},
    {"f8E4M3", 1, Kind::Float},
    {"f8E5M2", 1, Kind::Float},
    {"f16", 2, Kind::Float},
    {"bf16", 2, Kind::Float},
    {"f32", 4, Kind::Float},
    {"f64", 8, Kind::Float},
}};
static_assert(static_cast<size_t>(ElementType::F64) + 1 == kElementTypeCount);

const ElementRow& row(ElementType element) { return kElements[static_cast<size_t>(element)]; }

std::unexpected<std::string> error(std::string text) { return std::unexpected(std::move(text)); }

}  // namespace

std::string_view element_name(ElementType element) { return row(element).name; }
size_t element_size(ElementType element) { return row(element).size; }
bool is_float(ElementType element) { return row(element).kind == Kind::Float; }
bool is_unsigned(ElementType element) { return row(element).kind == Kind::Unsigned; }

std::optional<ElementType> element_from_name(std::string_view name) {
  for (size_t i = 0; i < kElements.size(); ++i) {
    if (kElements[i].name == name) return static_cast<ElementType>(i);
  }
  return std::nullopt;
}

std::optional<uint64_t> checked_product(const std::vector<uint64_t>& dims, uint64_t unit) {
  constexpr uint64_t kMax = std::numeric_limits<int64_t>::max();
  uint64_t product = unit;
  bool overflow = false;
  for (const uint64_t dim : dims) {
    if (dim == 0) return 0;
    if (dim > kMax / product) {
      overflow = true;
      continue;
    }
    product *= dim;
  }
  if (overflow) return std::nullopt;
  return product;
}

std::optional<uint64_t> ArrayType::element_count() const { return checked_product(dims, 1); }
std::optional<uint64_t> ArrayType::byte_size() const {
  return checked_product(dims, element_size(element));
}

std::expected<ArrayType, std::string> parse_array_type(std::string_view text) {
  ArrayType type;
  for (;;) {
    const size_t end = text.find('x');
    if (end == std::string_view::npos) break;
    const std::string_view dim = text.substr(0, end);
    uint64_t value = 0;
    const auto parsed = std::from_chars(dim.data(), dim.data() + dim.size(), value);
    if (parsed.ec == std::errc::result_out_of_range) {
      return error(fmt::format("dimension '{}' does not fit in 64 bits", dim));
    }
    if (parsed.ec != std::errc{} || parsed.ptr != dim.data() + dim.size()) {
      return error(fmt::format("'{}' is not a dimension", dim));
    }
    type.dims.push_back(value);
    text.remove_prefix(end + 1);
  }
  const auto element = element_from_name(text);
  if (!element) {
    std::string known;
    for (const ElementRow& each : kElements) {
      known += known.empty() ? "" : ", ";
      known += each.name;
    }
    return error(fmt::format("'{}' is not an element type; known are {}", text, known));
  }
  type.element = *element;
  if (!type.byte_size()) return error("the size in bytes does not fit in 63 bits");
  return type;
}

std::string to_string(const ArrayType& type) {
  std::string out;
  for (const uint64_t dim : type.dims) out += fmt::format("{}x", dim);
  out += element_name(type.element);
  return out;
}

}  // namespace loom
