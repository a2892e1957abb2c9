// What is known about one float: which kinds of number it may be.
//
// Facts are sound: every value that a program without contract violations can produce satisfies
// them. A zero belongs to the finite numbers of its sign. Pure functions; safe from any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "loom/ir/attr.h"

namespace loom {

struct FloatFacts {
  static constexpr uint8_t kNan = 1, kMinusInf = 2, kMinus = 4, kPlus = 8, kPlusInf = 16;
  static constexpr uint8_t kFinite = kMinus | kPlus, kInf = kMinusInf | kPlusInf;
  static constexpr uint8_t kAll = kNan | kInf | kFinite;

  uint8_t possible = kAll;

  // Everything that a format can hold.
  static FloatFacts of(ScalarKind kind);
  static FloatFacts exactly(double value);

  bool may(uint8_t kinds) const { return (possible & kinds) != 0; }
  // No value satisfies the facts.
  bool empty() const { return possible == 0; }

  friend bool operator==(const FloatFacts&, const FloatFacts&) = default;
};

// Both hold; the result may be empty. One of them holds.
inline FloatFacts meet(FloatFacts a, FloatFacts b) {
  return {static_cast<uint8_t>(a.possible & b.possible)};
}
inline FloatFacts join(FloatFacts a, FloatFacts b) {
  return {static_cast<uint8_t>(a.possible | b.possible)};
}

// Results in the format `kind`, whatever it rounds to.
namespace facts {

FloatFacts add(FloatFacts a, FloatFacts b, ScalarKind kind);
FloatFacts sub(FloatFacts a, FloatFacts b, ScalarKind kind);
FloatFacts mul(FloatFacts a, FloatFacts b, ScalarKind kind);
FloatFacts div(FloatFacts a, FloatFacts b, ScalarKind kind);
FloatFacts fma(FloatFacts a, FloatFacts b, FloatFacts c, ScalarKind kind);
FloatFacts neg(FloatFacts a);
FloatFacts abs(FloatFacts a);
// One of the two; NaN when either side is one, or only when both are.
FloatFacts either(FloatFacts a, FloatFacts b);
FloatFacts either_number(FloatFacts a, FloatFacts b);
FloatFacts sqrt(FloatFacts a);
FloatFacts exp(FloatFacts a, ScalarKind kind);
// From another format.
FloatFacts convert(FloatFacts a, ScalarKind kind);
// Of an integer that may be negative or not.
FloatFacts from_integer(bool may_be_negative, ScalarKind kind);

}  // namespace facts

// The facts after a float predicate is known to be true; may be empty.
FloatFacts refine(PredicateKind kind, FloatFacts a);
// Whether the float predicate holds, when the facts decide it. Empty facts decide nothing.
std::optional<bool> holds(PredicateKind kind, FloatFacts a);

// "nan -inf - + +inf", for tests and dumps.
std::string to_text(FloatFacts facts);

}  // namespace loom
