// What is known about one integer-like value (integer, index, offset), and how operations,
// predicates and comparisons change it.
//
// Values are read as signed 64-bit numbers; i1 is 0 or 1. Facts are sound: every value that a
// program without contract violations can produce satisfies them. Nothing here overflows or throws.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>

#include "loom/ir/attr.h"

namespace loom {

// The values of a type, and what arithmetic does that leaves them.
struct IntDomain {
  unsigned width = 64;
  int64_t lo = std::numeric_limits<int64_t>::min();
  int64_t hi = std::numeric_limits<int64_t>::max();
  bool wraps = true;  // false: a result outside is a contract violation (index, offset)

  // Index for a kind that is not an integer.
  static IntDomain of(ScalarKind kind);
  static IntDomain bits(unsigned width);
  IntDomain wrapping() const { return {width, lo, hi, true}; }
};

// Order of CmpIPredicate in the dialect tables.
enum class Compare : uint8_t { Eq, Ne, Slt, Sle, Sgt, Sge, Ult, Ule, Ugt, Uge };
Compare negated(Compare compare);
// The comparison with its sides exchanged.
Compare swapped(Compare compare);
// Whether `known` being true decides `asked` about the same two sides.
std::optional<bool> implied(Compare known, Compare asked);

struct IntFacts {
  int64_t lo = std::numeric_limits<int64_t>::min();
  int64_t hi = std::numeric_limits<int64_t>::max();
  uint64_t divisor = 1;  // the value is a multiple of it; 0 exactly for the value 0
  bool non_zero = false;
  bool power_of_two = false;

  static IntFacts exactly(int64_t value);
  static IntFacts range(int64_t lo, int64_t hi);
  static IntFacts of(const IntDomain& domain) { return range(domain.lo, domain.hi); }

  std::optional<int64_t> exact() const { return lo == hi ? std::optional(lo) : std::nullopt; }
  bool non_negative() const { return lo >= 0; }
  bool positive() const { return lo > 0; }
  bool divisible_by(uint64_t d) const { return divisor == 0 || (d != 0 && divisor % d == 0); }
  // No value satisfies the facts: the program point is unreachable or a promise was false.
  bool empty() const { return lo > hi; }
  bool contains(int64_t value) const;
  // Says nothing beyond the domain.
  bool is_trivial(const IntDomain& domain) const;
  // Draws the conclusions that the fields allow about each other.
  IntFacts normalized() const;

  friend bool operator==(const IntFacts&, const IntFacts&) = default;
};

// Both hold; the result may be empty.
IntFacts meet(const IntFacts& a, const IntFacts& b);
// One of them holds.
IntFacts join(const IntFacts& a, const IntFacts& b);

namespace facts {

IntFacts add(const IntFacts& a, const IntFacts& b, const IntDomain& domain);
IntFacts sub(const IntFacts& a, const IntFacts& b, const IntDomain& domain);
IntFacts mul(const IntFacts& a, const IntFacts& b, const IntDomain& domain);
// Non-negative by positive (index.div, index.rem): other values are contract violations.
IntFacts div(const IntFacts& a, const IntFacts& b);
IntFacts rem(const IntFacts& a, const IntFacts& b);
// Toward zero; a zero divisor is a contract violation.
IntFacts div_signed(const IntFacts& a, const IntFacts& b, const IntDomain& domain);
IntFacts rem_signed(const IntFacts& a, const IntFacts& b, const IntDomain& domain);
IntFacts div_unsigned(const IntFacts& a, const IntFacts& b, const IntDomain& domain);
IntFacts rem_unsigned(const IntFacts& a, const IntFacts& b, const IntDomain& domain);
IntFacts neg(const IntFacts& a, const IntDomain& domain);
IntFacts abs(const IntFacts& a, const IntDomain& domain);
IntFacts min_signed(const IntFacts& a, const IntFacts& b);
IntFacts max_signed(const IntFacts& a, const IntFacts& b);
IntFacts min_unsigned(const IntFacts& a, const IntFacts& b);
IntFacts max_unsigned(const IntFacts& a, const IntFacts& b);
IntFacts bit_and(const IntFacts& a, const IntFacts& b, const IntDomain& domain);
IntFacts bit_or(const IntFacts& a, const IntFacts& b, const IntDomain& domain);
IntFacts bit_xor(const IntFacts& a, const IntFacts& b, const IntDomain& domain);
// Shifts by a count inside the width; other counts are contract violations.
IntFacts shift_left(const IntFacts& a, const IntFacts& count, const IntDomain& domain);
IntFacts shift_right_signed(const IntFacts& a, const IntFacts& count, const IntDomain& domain);
IntFacts shift_right_unsigned(const IntFacts& a, const IntFacts& count, const IntDomain& domain);
// Rounded up or down; a zero divisor is a contract violation.
IntFacts ceil_div_signed(const IntFacts& a, const IntFacts& b, const IntDomain& domain);
IntFacts floor_div_signed(const IntFacts& a, const IntFacts& b, const IntDomain& domain);
IntFacts ceil_div_unsigned(const IntFacts& a, const IntFacts& b, const IntDomain& domain);
// Either direction, by any count.
IntFacts rotate(const IntFacts& a, const IntDomain& domain);
// Zeros above the highest set bit and below the lowest; the width for 0.
IntFacts leading_zeros(const IntFacts& a, const IntDomain& domain);
IntFacts trailing_zeros(const IntFacts& a, const IntDomain& domain);
IntFacts population(const IntFacts& a, const IntDomain& domain);
// -1, 0 or 1.
IntFacts sign(const IntFacts& a, const IntDomain& domain);
// `width` bits of a value, zero-extended or sign-extended to the result's domain.
IntFacts bit_field_unsigned(unsigned width, const IntDomain& to);
IntFacts bit_field_signed(unsigned width, const IntDomain& to);
// The low bits of `a` read in the domain.
IntFacts truncate(const IntFacts& a, const IntDomain& to);
IntFacts sign_extend(const IntFacts& a, const IntDomain& from);
IntFacts zero_extend(const IntFacts& a, const IntDomain& from);
// The induction variable of a loop [lo, hi) with a positive step.
IntFacts induction(const IntFacts& lo, const IntFacts& hi, const IntFacts& step);

}  // namespace facts

// The outcome when the facts decide it. Empty facts decide nothing.
std::optional<bool> compare(Compare relation, const IntFacts& a, const IntFacts& b);
// Tightens both sides by a comparison that is known to be true; a result may be empty.
void refine(Compare relation, IntFacts& a, IntFacts& b);

// The comparison that a predicate of two arguments states; nullopt for the others.
std::optional<Compare> comparison_of(PredicateKind kind);
// Tightens the facts of a predicate's arguments by its truth. `args[i]` are the facts of argument i
// (exact for literals). Float predicates change nothing.
void refine(PredicateKind kind, IntFacts* args);
// Whether the predicate holds, when the facts decide it; float predicates are undecided.
std::optional<bool> holds(PredicateKind kind, const IntFacts* args);

// "[0, 63] mul 8", for tests and dumps.
std::string to_text(const IntFacts& facts);

}  // namespace loom
