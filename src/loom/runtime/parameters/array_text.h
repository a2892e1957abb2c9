// Elements of an array as numbers and as text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <span>
#include <string>
#include <string_view>

#include "loom/runtime/parameters/array_type.h"

namespace loom {

// `at` points to element_size(element) bytes of any alignment in all functions here.

// Rounds to nearest, ties to even. f8E4M3 saturates to ±448, infinities included, and keeps NaN;
// the other floats overflow to infinity. For an integer element the value is truncated toward zero
// and must be in its range (NaN stores 0).
void store_float(ElementType element, double value, std::byte* at);
// An integer element keeps the low bits; i1 stores whether the value is not 0; a float rounds once.
void store_integer(ElementType element, int64_t value, std::byte* at);

// Exact for every float and for integers up to 53 bits; wider ones round to nearest.
double load_float(ElementType element, const std::byte* at);
// For integer elements, sign or zero extended (u64 keeps its bits); a float truncates toward zero
// and saturates, NaN gives 0.
int64_t load_integer(ElementType element, const std::byte* at);

// Stores one literal: `-3`, `0x1f`, `true` for integers (a signless iN takes -2^(N-1) to 2^N-1),
// `1.5`, `-2e-3`, `inf`, `nan` for floats, rounded once from the decimal text. The error says what
// is wrong.
std::expected<void, std::string> store_literal(ElementType element, std::string_view literal,
                                               std::byte* at);
// Stores the literal in every element of `bytes`, whose size is a multiple of the element size.
std::expected<void, std::string> fill_literal(ElementType element, std::string_view literal,
                                              std::span<std::byte> bytes);

// The shortest decimal text that store_literal turns into the same element; NaN is `nan`. Whole
// numbers of the floats below 32 bits are written out: 65504, not 6.55e+04.
std::string format_element(ElementType element, const std::byte* at);
// Nested brackets, one innermost row a line, no line end after the last:
//   [[1, 2],
//    [3, 4]]
// `bytes` holds type.byte_size() bytes or more. An array without elements is `[]`.
std::string format_array(const ArrayType& type, std::span<const std::byte> bytes);

}  // namespace loom
