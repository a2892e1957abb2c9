#include "loom/facts/int_facts.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <numeric>

namespace loom {
namespace {

constexpr int64_t kMin = std::numeric_limits<int64_t>::min();
constexpr int64_t kMax = std::numeric_limits<int64_t>::max();

uint64_t magnitude(int64_t value) {
  return value < 0 ? uint64_t{0} - static_cast<uint64_t>(value) : static_cast<uint64_t>(value);
}

// Multiples of the divisor inside [lo, hi]; leaves lo > hi when there are none.
void align_bounds(IntFacts& facts) {
  const uint64_t d = facts.divisor;
  if (d <= 1) return;
  const uint64_t lo_rest = magnitude(facts.lo) % d;
  const uint64_t hi_rest = magnitude(facts.hi) % d;
  if (lo_rest != 0) {
    const uint64_t up = facts.lo < 0 ? lo_rest : d - lo_rest;
    if (up > static_cast<uint64_t>(kMax) - static_cast<uint64_t>(facts.lo)) {
      facts.hi = kMin;
      facts.lo = kMax;
      return;
    }
    facts.lo = static_cast<int64_t>(static_cast<uint64_t>(facts.lo) + up);
  }
  if (hi_rest != 0) {
    const uint64_t down = facts.hi < 0 ? d - hi_rest : hi_rest;
    if (down > static_cast<uint64_t>(facts.hi) - static_cast<uint64_t>(kMin)) {
      facts.hi = kMin;
      facts.lo = kMax;
      return;
    }
    facts.hi = static_cast<int64_t>(static_cast<uint64_t>(facts.hi) - down);
  }
}

void apply_power_of_two(IntFacts& facts) {
  facts.lo = std::max<int64_t>(facts.lo, 1);
  if (facts.lo > facts.hi) return;
  const uint64_t lo = std::bit_ceil(static_cast<uint64_t>(facts.lo));
  const uint64_t hi = std::bit_floor(static_cast<uint64_t>(facts.hi));
  if (lo > hi) {
    facts.lo = kMax;
    facts.hi = kMin;
    return;
  }
  facts.lo = static_cast<int64_t>(lo);
  facts.hi = static_cast<int64_t>(hi);
  // Every power of two from `lo` on is a multiple of it.
  if (facts.divisor < lo && lo % std::max<uint64_t>(facts.divisor, 1) == 0) facts.divisor = lo;
}

IntFacts make_empty() {
  IntFacts facts;
  facts.lo = kMax;
  facts.hi = kMin;
  return facts;
}

}  // namespace

IntDomain IntDomain::bits(unsigned width) {
  if (width == 1) return {1, 0, 1, true};
  if (width == 64) return {};
  const int64_t top = int64_t{1} << (width - 1);
  return {width, -top, top - 1, true};
}

IntDomain IntDomain::of(ScalarKind kind) {
  if (kind == ScalarKind::Offset) return {64, 0, kMax, false};
  if (kind == ScalarKind::Index || !is_integer(kind)) return {64, kMin, kMax, false};
  return bits(scalar_bits(kind));
}

Compare negated(Compare compare) {
  switch (compare) {
    case Compare::Eq:
      return Compare::Ne;
    case Compare::Ne:
      return Compare::Eq;
    case Compare::Slt:
      return Compare::Sge;
    case Compare::Sle:
      return Compare::Sgt;
    case Compare::Sgt:
      return Compare::Sle;
    case Compare::Sge:
      return Compare::Slt;
    case Compare::Ult:
      return Compare::Uge;
    case Compare::Ule:
      return Compare::Ugt;
    case Compare::Ugt:
      return Compare::Ule;
    case Compare::Uge:
      return Compare::Ult;
  }
  return compare;
}

Compare swapped(Compare compare) {
  switch (compare) {
    case Compare::Eq:
    case Compare::Ne:
      return compare;
    case Compare::Slt:
      return Compare::Sgt;
    case Compare::Sle:
      return Compare::Sge;
    case Compare::Sgt:
      return Compare::Slt;
    case Compare::Sge:
      return Compare::Sle;
    case Compare::Ult:
      return Compare::Ugt;
    case Compare::Ule:
      return Compare::Uge;
    case Compare::Ugt:
      return Compare::Ult;
    case Compare::Uge:
      return Compare::Ule;
  }
  return compare;
}

std::optional<bool> implied(Compare known, Compare asked) {
  // Outcomes that a comparison allows: less, equal, greater in signed order, then in unsigned
  // order.
  constexpr unsigned kLess = 1, kEqual = 2, kGreater = 4;
  constexpr unsigned kAllowed[] = {kEqual,   kLess | kGreater,  kLess, kLess | kEqual,
                                   kGreater, kGreater | kEqual, kLess, kLess | kEqual,
                                   kGreater, kGreater | kEqual};
  const auto order = [](Compare c) { return c >= Compare::Ult ? 2 : c >= Compare::Slt ? 1 : 0; };
  unsigned can = kAllowed[static_cast<size_t>(known)];
  const unsigned wanted = kAllowed[static_cast<size_t>(asked)];
  // Between the signed and the unsigned order only equality carries over.
  if (order(known) != 0 && order(asked) != 0 && order(known) != order(asked)) {
    can = (can & kEqual) != 0 ? kLess | kEqual | kGreater : kLess | kGreater;
  }
  if ((can & ~wanted) == 0) return true;
  if ((can & wanted) == 0) return false;
  return std::nullopt;
}

IntFacts IntFacts::exactly(int64_t value) {
  return {value, value, magnitude(value), value != 0,
          value > 0 && std::has_single_bit(static_cast<uint64_t>(value))};
}

IntFacts IntFacts::range(int64_t lo, int64_t hi) {
  IntFacts facts;
  facts.lo = lo;
  facts.hi = hi;
  return facts.normalized();
}

bool IntFacts::contains(int64_t value) const {
  if (value < lo || value > hi) return false;
  if (non_zero && value == 0) return false;
  if (divisor == 0 ? value != 0 : magnitude(value) % divisor != 0) return false;
  return !power_of_two || (value > 0 && std::has_single_bit(static_cast<uint64_t>(value)));
}

bool IntFacts::is_trivial(const IntDomain& domain) const {
  return lo <= domain.lo && hi >= domain.hi && divisor == 1 && !non_zero && !power_of_two;
}

IntFacts IntFacts::normalized() const {
  IntFacts facts = *this;
  // Each round only tightens; the second picks up what the first one concluded.
  for (int round = 0; round < 3; ++round) {
    const IntFacts before = facts;
    if (facts.divisor == 0) {
      facts.lo = std::max<int64_t>(facts.lo, 0);
      facts.hi = std::min<int64_t>(facts.hi, 0);
    }
    if (facts.power_of_two) apply_power_of_two(facts);
    if (facts.lo > facts.hi) return make_empty();
    if (facts.lo > 0 || facts.hi < 0) facts.non_zero = true;
    if (facts.non_zero) {
      if (facts.lo == 0) facts.lo = 1;
      if (facts.hi == 0) facts.hi = -1;
    }
    if (facts.lo > facts.hi) return make_empty();
    align_bounds(facts);
    if (facts.lo > facts.hi) return make_empty();
    if (facts.lo == facts.hi) return contains(facts.lo) ? exactly(facts.lo) : make_empty();
    if (facts == before) break;
  }
  return facts;
}

IntFacts meet(const IntFacts& a, const IntFacts& b) {
  IntFacts facts;
  facts.lo = std::max(a.lo, b.lo);
  facts.hi = std::min(a.hi, b.hi);
  facts.non_zero = a.non_zero || b.non_zero;
  facts.power_of_two = a.power_of_two || b.power_of_two;
  if (a.divisor == 0 || b.divisor == 0) {
    facts.divisor = 0;
  } else {
    const uint64_t part = a.divisor / std::gcd(a.divisor, b.divisor);
    uint64_t multiple = 0;
    // A least common multiple beyond 64 bits has only 0 as a representable multiple; either
    // divisor alone is still true.
    facts.divisor = __builtin_mul_overflow(part, b.divisor, &multiple)
                        ? std::max(a.divisor, b.divisor)
                        : multiple;
  }
  return facts.normalized();
}

IntFacts join(const IntFacts& a, const IntFacts& b) {
  if (a.empty()) return b;
  if (b.empty()) return a;
  IntFacts facts;
  facts.lo = std::min(a.lo, b.lo);
  facts.hi = std::max(a.hi, b.hi);
  facts.divisor = std::gcd(a.divisor, b.divisor);
  facts.non_zero = a.non_zero && b.non_zero;
  facts.power_of_two = a.power_of_two && b.power_of_two;
  return facts.normalized();
}

std::optional<bool> compare(Compare relation, const IntFacts& a, const IntFacts& b) {
  if (a.empty() || b.empty()) return std::nullopt;
  switch (relation) {
    case Compare::Eq:
      if (a.lo == a.hi && b.lo == b.hi && a.lo == b.lo) return true;
      if (a.hi < b.lo || b.hi < a.lo) return false;
      if (meet(a, b).empty()) return false;
      return std::nullopt;
    case Compare::Slt:
      if (a.hi < b.lo) return true;
      if (a.lo >= b.hi) return false;
      return std::nullopt;
    case Compare::Sle:
      if (a.hi <= b.lo) return true;
      if (a.lo > b.hi) return false;
      return std::nullopt;
    case Compare::Ult:
    case Compare::Ule: {
      const Compare same_sign = relation == Compare::Ult ? Compare::Slt : Compare::Sle;
      const bool a_negative = a.hi < 0, b_negative = b.hi < 0;
      if ((a.lo >= 0 && b.lo >= 0) || (a_negative && b_negative)) {
        return compare(same_sign, a, b);
      }
      // A negative number is above every non-negative one when read as unsigned.
      if (a.lo >= 0 && b_negative) return true;
      if (a_negative && b.lo >= 0) return false;
      return std::nullopt;
    }
    case Compare::Sgt:
    case Compare::Sge:
    case Compare::Ugt:
    case Compare::Uge:
      return compare(swapped(relation), b, a);
    case Compare::Ne: {
      const auto equal = compare(Compare::Eq, a, b);
      return equal ? std::optional(!*equal) : std::nullopt;
    }
  }
  return std::nullopt;
}

namespace {

void cut_below(IntFacts& facts, int64_t bound) {
  facts.lo = std::max(facts.lo, bound);
  facts = facts.normalized();
}
void cut_above(IntFacts& facts, int64_t bound) {
  facts.hi = std::min(facts.hi, bound);
  facts = facts.normalized();
}

void exclude(IntFacts& facts, int64_t value) {
  if (value == 0) facts.non_zero = true;
  if (facts.lo == value && value != kMax) ++facts.lo;
  if (facts.hi == value && value != kMin) --facts.hi;
  facts = facts.normalized();
}

// a < b (strict) or a <= b.
void refine_less(IntFacts& a, IntFacts& b, bool strict) {
  if (strict && (b.hi == kMin || a.lo == kMax)) {
    a = b = make_empty();
    return;
  }
  const int64_t above = b.hi - (strict ? 1 : 0);
  const int64_t below = a.lo + (strict ? 1 : 0);
  cut_above(a, above);
  cut_below(b, below);
}

}  // namespace

void refine(Compare relation, IntFacts& a, IntFacts& b) {
  if (a.empty() || b.empty()) return;
  switch (relation) {
    case Compare::Eq:
      a = b = meet(a, b);
      return;
    case Compare::Ne:
      if (b.exact()) exclude(a, b.lo);
      if (!a.empty() && a.exact()) exclude(b, a.lo);
      return;
    case Compare::Slt:
      return refine_less(a, b, true);
    case Compare::Sle:
      return refine_less(a, b, false);
    case Compare::Ult:
    case Compare::Ule:
      // Below a non-negative bound as unsigned means inside [0, bound].
      if (b.lo >= 0) {
        cut_below(a, 0);
        if (!a.empty()) refine_less(a, b, relation == Compare::Ult);
      } else if (a.hi < 0) {
        cut_above(b, -1);
        if (!b.empty()) refine_less(a, b, relation == Compare::Ult);
      }
      return;
    case Compare::Sgt:
    case Compare::Sge:
    case Compare::Ugt:
    case Compare::Uge:
      return refine(swapped(relation), b, a);
  }
}

std::optional<Compare> comparison_of(PredicateKind kind) {
  switch (kind) {
    case PredicateKind::Eq:
      return Compare::Eq;
    case PredicateKind::Ne:
      return Compare::Ne;
    case PredicateKind::Lt:
      return Compare::Slt;
    case PredicateKind::Le:
    case PredicateKind::Max:
      return Compare::Sle;
    case PredicateKind::Gt:
      return Compare::Sgt;
    case PredicateKind::Ge:
    case PredicateKind::Min:
      return Compare::Sge;
    default:
      return std::nullopt;
  }
}

void refine(PredicateKind kind, IntFacts* args) {
  if (const auto relation = comparison_of(kind)) return refine(*relation, args[0], args[1]);
  switch (kind) {
    case PredicateKind::Range:
      refine(Compare::Sge, args[0], args[1]);
      refine(Compare::Sle, args[0], args[2]);
      return;
    case PredicateKind::Mul:
      if (const auto n = args[1].exact(); n && *n != 0) {
        IntFacts multiple;
        multiple.divisor = magnitude(*n);
        args[0] = meet(args[0], multiple);
      } else if (args[1].divisor > 1) {
        IntFacts multiple;
        multiple.divisor = args[1].divisor;
        args[0] = meet(args[0], multiple);
      }
      return;
    case PredicateKind::Pow2:
      args[0].power_of_two = true;
      args[0] = args[0].normalized();
      return;
    default:
      return;
  }
}

std::optional<bool> holds(PredicateKind kind, const IntFacts* args) {
  if (const auto relation = comparison_of(kind)) return compare(*relation, args[0], args[1]);
  if (args[0].empty()) return std::nullopt;
  switch (kind) {
    case PredicateKind::Range: {
      const auto low = compare(Compare::Sge, args[0], args[1]);
      const auto high = compare(Compare::Sle, args[0], args[2]);
      if ((low && !*low) || (high && !*high)) return false;
      if (low && high) return true;
      return std::nullopt;
    }
    case PredicateKind::Mul: {
      const auto n = args[1].exact();
      if (!n) return std::nullopt;
      if (*n == 0) return args[0].exact() ? std::optional(*args[0].exact() == 0) : std::nullopt;
      if (args[0].divisible_by(magnitude(*n))) return true;
      if (args[0].exact()) return false;
      return std::nullopt;
    }
    case PredicateKind::Pow2:
      if (args[0].power_of_two) return true;
      if (args[0].exact() || args[0].hi <= 0) return false;
      return std::nullopt;
    default:
      return std::nullopt;
  }
}

std::string to_text(const IntFacts& facts) {
  if (facts.empty()) return "empty";
  std::string text;
  if (facts.exact()) return fmt::format("{}", facts.lo);
  text = fmt::format("[{}, {}]", facts.lo, facts.hi);
  if (facts.divisor > 1) text += fmt::format(" mul {}", facts.divisor);
  if (facts.power_of_two) text += " pow2";
  if (facts.non_zero && facts.lo <= 0 && facts.hi >= 0) text += " non-zero";
  return text;
}

}  // namespace loom
