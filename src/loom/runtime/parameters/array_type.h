// The type of a dense array outside of a module: what a file holds and what a flag states, in
// Loom's order, dimensions before the element: `4x8xf32`, rank 0 is `f32`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace loom {

// Loom's storable scalars, and the unsigned integers that files distinguish and Loom does not.
// An i1 takes one byte, 0 or 1. Multi-byte elements are little endian.
enum class ElementType : uint8_t {
  I1,
  I8,
  I16,
  I32,
  I64,
  U8,
  U16,
  U32,
  U64,
  F8E4M3,
  F8E5M2,
  F16,
  BF16,
  F32,
  F64,
};
inline constexpr size_t kElementTypeCount = 15;

std::string_view element_name(ElementType element);
std::optional<ElementType> element_from_name(std::string_view name);
// In bytes; also the natural alignment.
size_t element_size(ElementType element);
bool is_float(ElementType element);
// True for the u-types and i1.
bool is_unsigned(ElementType element);

struct ArrayType {
  ElementType element = ElementType::F32;
  std::vector<uint64_t> dims;  // outermost first; the last one is contiguous

  // Nothing when the count or the size in bytes does not fit in 63 bits.
  std::optional<uint64_t> element_count() const;
  std::optional<uint64_t> byte_size() const;
  friend bool operator==(const ArrayType&, const ArrayType&) = default;
};

// The product of the dimensions times `unit`; nothing past 63 bits. A zero extent makes it 0
// however large the others are.
std::optional<uint64_t> checked_product(const std::vector<uint64_t>& dims, uint64_t unit);

// A parsed type always has a byte size. The error says what is wrong, without the text itself.
std::expected<ArrayType, std::string> parse_array_type(std::string_view text);
std::string to_string(const ArrayType& type);

}  // namespace loom
