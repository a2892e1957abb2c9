// Exact values of scalar types: how each format stores a number and how numbers are rounded to it.
//
// Pure functions without state; safe from any thread.
#pragma once

#include <cstdint>
#include <optional>

#include "loom/ir/attr.h"
#include "loom/ir/type.h"

namespace loom {

// `bits` holds the value in the low bits of its own width, zero above: integers in two's
// complement, floats in their own IEEE-style encoding, index and offset in 64 bits.
struct ScalarValue {
  ScalarKind kind = ScalarKind::Index;
  uint64_t bits = 0;

  friend bool operator==(const ScalarValue&, const ScalarValue&) = default;
};

// Ones in the low `scalar_bits(kind)` bits.
uint64_t scalar_mask(ScalarKind kind);

// --- integers, index, offset --------------------------------------------------------------------
// Keeps the low bits of `value`.
ScalarValue from_bits(ScalarKind kind, uint64_t value);
// Two's complement reading; an i1 that is set reads as -1.
int64_t as_signed(ScalarValue value);
inline uint64_t as_unsigned(ScalarValue value) { return value.bits; }

// --- floats -------------------------------------------------------------------------------------
// f8E4M3 has no infinity: its largest finite value is 448, and larger magnitudes and infinities
// become +-448 when rounded to it. Every other format overflows to infinity.
//
// The value of a float, exactly. Integers read as signed, i1 as 0 or 1.
double to_double(ScalarValue value);
// Rounds to the nearest value of a float format, ties to even. A NaN becomes the format's quiet
// NaN.
ScalarValue from_double(ScalarKind kind, double value);
// Rounds (-1)^negative * magnitude * 2^exponent, plus a non-zero remainder below the last bit when
// `sticky`, once.
ScalarValue round_to(ScalarKind kind, bool negative, uint64_t magnitude, int exponent,
                     bool sticky = false);
ScalarValue quiet_nan(ScalarKind kind);
bool is_nan(ScalarValue value);

// --- literals -----------------------------------------------------------------------------------
// The value of an Integer, Float or Bool literal as `kind`; nullopt when it does not fit: integers
// of `w` bits take -2^(w-1) ... 2^w-1 and i1 takes 0, 1, true and false; index takes integers and
// offset the non-negative ones; floats take float literals within their finite range, and inf and
// nan where the format has them.
std::optional<ScalarValue> from_literal(const Attr& literal, ScalarKind kind);
// The literal that prints as this value: Bool for i1, Integer (signed), or Float.
Attr to_literal(ScalarValue value);

}  // namespace loom
