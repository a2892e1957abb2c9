// How operations carry facts from operands to results.
#include <algorithm>
#include <bit>
#include <numeric>

#include "loom/facts/int_facts.h"

namespace loom::facts {
namespace {

__extension__ typedef __int128 Wide;

constexpr int64_t kMin = std::numeric_limits<int64_t>::min();
constexpr int64_t kMax = std::numeric_limits<int64_t>::max();

// Greatest power of two dividing every value; 64 for the exact value 0.
unsigned known_zeros(const IntFacts& facts) {
  return static_cast<unsigned>(std::countr_zero(facts.divisor));
}

uint64_t power_of_two_divisor(unsigned zeros) { return uint64_t{1} << std::min(zeros, 63u); }

// The low bits of an exact value, read in the domain.
IntFacts wrapped(uint64_t value, const IntDomain& domain) {
  const unsigned shift = 64 - domain.width;
  const uint64_t high = value << shift;
  return IntFacts::exactly(domain.width == 1 ? static_cast<int64_t>(high >> shift)
                                             : static_cast<int64_t>(high) >> shift);
}

// A mathematical result range put into the domain. Where values may wrap, only powers of two up to
// the width survive in the divisor; where they may not, the bounds are clamped.
IntFacts fit(Wide lo, Wide hi, uint64_t divisor, const IntDomain& domain) {
  IntFacts result;
  if (lo < domain.lo || hi > domain.hi) {
    if (domain.wraps) {
      if (lo == hi) return wrapped(static_cast<uint64_t>(lo), domain);
      const unsigned zeros = divisor == 0 ? 64 : static_cast<unsigned>(std::countr_zero(divisor));
      result.lo = domain.lo;
      result.hi = domain.hi;
      result.divisor = power_of_two_divisor(std::min(zeros, domain.width));
      if (zeros >= domain.width) return IntFacts::exactly(0);
      return result.normalized();
    }
    // Entirely outside: every execution violates the contract, so any facts are sound.
    if (lo > domain.hi || hi < domain.lo) return IntFacts::of(domain);
    lo = std::max<Wide>(lo, domain.lo);
    hi = std::min<Wide>(hi, domain.hi);
  }
  result.lo = static_cast<int64_t>(lo);
  result.hi = static_cast<int64_t>(hi);
  result.divisor = divisor;
  const IntFacts normal = result.normalized();
  return normal.empty() ? IntFacts::of(domain) : normal;
}

uint64_t multiply_divisors(uint64_t a, uint64_t b) {
  uint64_t product = 0;
  // Beyond 64 bits either factor alone is still a divisor.
  return __builtin_mul_overflow(a, b, &product) ? std::max(a, b) : product;
}

bool unusable(const IntFacts& a, const IntFacts& b) { return a.empty() || b.empty(); }

// All ones up to the highest bit of `value` (>= 0).
int64_t fill_below(int64_t value) {
  return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(value) + 1) - 1);
}

// Facts about the value read as unsigned, where it fits a signed 64-bit number.
IntFacts as_unsigned(const IntFacts& a, const IntDomain& domain) {
  if (a.lo >= 0 || domain.width == 64) return a;
  IntFacts result;
  const int64_t modulus = int64_t{1} << domain.width;
  result.lo = a.hi < 0 ? a.lo + modulus : 0;
  result.hi = a.hi < 0 ? a.hi + modulus : modulus - 1;
  result.divisor = power_of_two_divisor(std::min(known_zeros(a), domain.width));
  result.non_zero = a.non_zero;
  return result.normalized();
}

}  // namespace

IntFacts add(const IntFacts& a, const IntFacts& b, const IntDomain& domain) {
  if (unusable(a, b)) return IntFacts::of(domain);
  return fit(Wide{a.lo} + b.lo, Wide{a.hi} + b.hi, std::gcd(a.divisor, b.divisor), domain);
}

IntFacts sub(const IntFacts& a, const IntFacts& b, const IntDomain& domain) {
  if (unusable(a, b)) return IntFacts::of(domain);
  return fit(Wide{a.lo} - b.hi, Wide{a.hi} - b.lo, std::gcd(a.divisor, b.divisor), domain);
}

IntFacts mul(const IntFacts& a, const IntFacts& b, const IntDomain& domain) {
  if (unusable(a, b)) return IntFacts::of(domain);
  const Wide corners[] = {Wide{a.lo} * b.lo, Wide{a.lo} * b.hi, Wide{a.hi} * b.lo,
                          Wide{a.hi} * b.hi};
  const auto [lo, hi] = std::minmax_element(std::begin(corners), std::end(corners));
  return fit(*lo, *hi, multiply_divisors(a.divisor, b.divisor), domain);
}

IntFacts div(const IntFacts& a, const IntFacts& b) {
  const IntFacts num = meet(a, IntFacts::range(0, kMax));
  const IntFacts den = meet(b, IntFacts::range(1, kMax));
  if (unusable(num, den)) return IntFacts::range(0, kMax);
  IntFacts result;
  result.lo = num.lo / den.hi;
  result.hi = num.hi / den.lo;
  if (const auto c = den.exact(); c && num.divisible_by(static_cast<uint64_t>(*c))) {
    result.divisor = num.divisor / static_cast<uint64_t>(*c);
    result.non_zero = num.non_zero;
  }
  return result.normalized();
}

IntFacts rem(const IntFacts& a, const IntFacts& b) {
  const IntFacts num = meet(a, IntFacts::range(0, kMax));
  const IntFacts den = meet(b, IntFacts::range(1, kMax));
  if (unusable(num, den)) return IntFacts::range(0, kMax);
  if (den.exact() && num.divisible_by(static_cast<uint64_t>(den.lo))) return IntFacts::exactly(0);
  if (num.hi < den.lo) return num;
  IntFacts result;
  result.lo = 0;
  result.hi = std::min(num.hi, den.hi - 1);
  result.divisor = std::gcd(num.divisor, den.divisor);
  return result.normalized();
}

IntFacts div_signed(const IntFacts& a, const IntFacts& b, const IntDomain& domain) {
  if (unusable(a, b)) return IntFacts::of(domain);
  if (a.lo >= 0 && b.lo >= 0) return div(a, b);
  if (a.lo == domain.lo) return IntFacts::of(domain);
  const int64_t most = std::max(a.lo < 0 ? -a.lo : a.lo, a.hi < 0 ? -a.hi : a.hi);
  return IntFacts::range(-most, most);
}

IntFacts rem_signed(const IntFacts& a, const IntFacts& b, const IntDomain& domain) {
  if (unusable(a, b)) return IntFacts::of(domain);
  if (a.lo >= 0 && b.lo >= 0) return rem(a, b);
  if (const auto c = b.exact(); c && *c != 0 && *c != kMin) {
    const int64_t size = *c < 0 ? -*c : *c;
    if (a.divisible_by(static_cast<uint64_t>(size))) return IntFacts::exactly(0);
    return IntFacts::range(a.lo >= 0 ? 0 : 1 - size, a.hi <= 0 ? 0 : size - 1);
  }
  return IntFacts::range(a.lo >= 0 ? 0 : domain.lo, a.hi <= 0 ? 0 : domain.hi);
}

IntFacts div_unsigned(const IntFacts& a, const IntFacts& b, const IntDomain& domain) {
  const IntFacts num = as_unsigned(a, domain);
  const IntFacts den = as_unsigned(b, domain);
  if (unusable(num, den) || num.lo < 0 || den.lo < 0) return IntFacts::of(domain);
  return truncate(div(num, den), domain);
}

IntFacts rem_unsigned(const IntFacts& a, const IntFacts& b, const IntDomain& domain) {
  const IntFacts num = as_unsigned(a, domain);
  const IntFacts den = as_unsigned(b, domain);
  if (unusable(num, den) || num.lo < 0 || den.lo < 0) return IntFacts::of(domain);
  return truncate(rem(num, den), domain);
}

IntFacts neg(const IntFacts& a, const IntDomain& domain) {
  return sub(IntFacts::exactly(0), a, domain);
}

IntFacts abs(const IntFacts& a, const IntDomain& domain) {
  if (a.empty()) return IntFacts::of(domain);
  if (a.lo >= 0) return a;
  const Wide low = a.hi < 0 ? -Wide{a.hi} : (a.non_zero ? 1 : 0);
  const Wide high = std::max<Wide>(-Wide{a.lo}, a.hi);
  return fit(low, high, a.divisor, domain.wrapping());
}

IntFacts min_signed(const IntFacts& a, const IntFacts& b) {
  if (a.empty() || b.empty()) return {};
  IntFacts result = join(a, b);
  result.hi = std::min(a.hi, b.hi);
  return result.normalized();
}

IntFacts max_signed(const IntFacts& a, const IntFacts& b) {
  if (a.empty() || b.empty()) return {};
  IntFacts result = join(a, b);
  result.lo = std::max(a.lo, b.lo);
  return result.normalized();
}

IntFacts min_unsigned(const IntFacts& a, const IntFacts& b) {
  if (a.lo >= 0 && b.lo >= 0) return min_signed(a, b);
  return join(a, b);
}

IntFacts max_unsigned(const IntFacts& a, const IntFacts& b) {
  if (a.lo >= 0 && b.lo >= 0) return max_signed(a, b);
  return join(a, b);
}

IntFacts bit_and(const IntFacts& a, const IntFacts& b, const IntDomain& domain) {
  if (unusable(a, b)) return IntFacts::of(domain);
  IntFacts result = IntFacts::of(domain);
  if (a.lo >= 0) result = meet(result, IntFacts::range(0, a.hi));
  if (b.lo >= 0) result = meet(result, IntFacts::range(0, b.hi));
  const unsigned zeros = std::max(known_zeros(a), known_zeros(b));
  if (zeros >= domain.width) return IntFacts::exactly(0);
  result.divisor = power_of_two_divisor(zeros);
  return result.normalized();
}

IntFacts bit_or(const IntFacts& a, const IntFacts& b, const IntDomain& domain) {
  if (unusable(a, b)) return IntFacts::of(domain);
  IntFacts result = IntFacts::of(domain);
  if (a.lo >= 0 && b.lo >= 0) {
    result.lo = std::max(a.lo, b.lo);
    result.hi = fill_below(std::max(a.hi, b.hi));
  } else if (a.hi < 0 || b.hi < 0) {
    result.hi = -1;
  }
  result.non_zero = a.non_zero || b.non_zero;
  result.divisor = power_of_two_divisor(std::min(known_zeros(a), known_zeros(b)));
  return result.normalized();
}

IntFacts bit_xor(const IntFacts& a, const IntFacts& b, const IntDomain& domain) {
  if (unusable(a, b)) return IntFacts::of(domain);
  IntFacts result = IntFacts::of(domain);
  if (a.lo >= 0 && b.lo >= 0) {
    result.lo = 0;
    result.hi = fill_below(std::max(a.hi, b.hi));
  }
  result.divisor = power_of_two_divisor(std::min(known_zeros(a), known_zeros(b)));
  return result.normalized();
}

IntFacts shift_left(const IntFacts& a, const IntFacts& count, const IntDomain& domain) {
  if (unusable(a, count)) return IntFacts::of(domain);
  const IntFacts valid = meet(count, IntFacts::range(0, static_cast<int64_t>(domain.width) - 1));
  if (valid.empty()) return IntFacts::of(domain);
  if (const auto k = valid.exact()) {
    const Wide factor = Wide{1} << *k;
    return fit(Wide{a.lo} * factor, Wide{a.hi} * factor,
               multiply_divisors(a.divisor, uint64_t{1} << *k), domain.wrapping());
  }
  IntFacts result = IntFacts::of(domain.wrapping());
  const unsigned zeros = known_zeros(a) + static_cast<unsigned>(valid.lo);
  if (zeros >= domain.width) return IntFacts::exactly(0);
  result.divisor = power_of_two_divisor(zeros);
  return result.normalized();
}

IntFacts shift_right_signed(const IntFacts& a, const IntFacts& count, const IntDomain& domain) {
  if (domain.width == 1) return IntFacts::of(domain);
  if (unusable(a, count)) return IntFacts::of(domain);
  const IntFacts valid = meet(count, IntFacts::range(0, static_cast<int64_t>(domain.width) - 1));
  if (valid.empty()) return IntFacts::of(domain);
  IntFacts result;
  result.lo = a.lo >> (a.lo < 0 ? valid.lo : valid.hi);
  result.hi = a.hi >> (a.hi < 0 ? valid.hi : valid.lo);
  if (valid.exact() && a.divisible_by(uint64_t{1} << valid.lo)) {
    result.divisor = a.divisor >> valid.lo;
    result.non_zero = a.non_zero;
  }
  return result.normalized();
}

IntFacts shift_right_unsigned(const IntFacts& a, const IntFacts& count, const IntDomain& domain) {
  if (unusable(a, count)) return IntFacts::of(domain);
  if (a.lo >= 0 && domain.width > 1) return shift_right_signed(a, count, domain);
  const IntFacts valid = meet(count, IntFacts::range(0, static_cast<int64_t>(domain.width) - 1));
  if (valid.empty() || valid.lo == 0) return IntFacts::of(domain);
  return IntFacts::range(0, static_cast<int64_t>(~uint64_t{0} >> (64 - domain.width + valid.lo)));
}

namespace {

// Of a non-negative dividend and a positive divisor, rounded up.
IntFacts ceil_div_positive(const IntFacts& a, const IntFacts& b) {
  const IntFacts num = meet(a, IntFacts::range(0, kMax));
  const IntFacts den = meet(b, IntFacts::range(1, kMax));
  if (unusable(num, den)) return IntFacts::range(0, kMax);
  if (const auto c = den.exact(); c && num.divisible_by(static_cast<uint64_t>(*c))) {
    return div(num, den);
  }
  const auto up = [](int64_t x, int64_t y) { return x / y + (x % y != 0 ? 1 : 0); };
  return IntFacts::range(up(num.lo, den.hi), up(num.hi, den.lo));
}

// The magnitude of a quotient is at most that of the dividend, in either rounding.
IntFacts quotient_range(const IntFacts& a, const IntDomain& domain) {
  if (a.lo == domain.lo) return IntFacts::of(domain);
  const int64_t most = std::max(a.lo < 0 ? -a.lo : a.lo, a.hi < 0 ? -a.hi : a.hi);
  return IntFacts::range(-most, most);
}

}  // namespace

IntFacts ceil_div_signed(const IntFacts& a, const IntFacts& b, const IntDomain& domain) {
  if (unusable(a, b) || domain.width == 1) return IntFacts::of(domain);
  return a.lo >= 0 && b.lo >= 0 ? ceil_div_positive(a, b) : quotient_range(a, domain);
}

IntFacts floor_div_signed(const IntFacts& a, const IntFacts& b, const IntDomain& domain) {
  if (unusable(a, b) || domain.width == 1) return IntFacts::of(domain);
  return a.lo >= 0 && b.lo >= 0 ? div(a, b) : quotient_range(a, domain);
}

IntFacts ceil_div_unsigned(const IntFacts& a, const IntFacts& b, const IntDomain& domain) {
  const IntFacts num = as_unsigned(a, domain);
  const IntFacts den = as_unsigned(b, domain);
  if (unusable(num, den) || num.lo < 0 || den.lo < 0) return IntFacts::of(domain);
  return truncate(ceil_div_positive(num, den), domain);
}

IntFacts rotate(const IntFacts& a, const IntDomain& domain) {
  if (a.empty()) return IntFacts::of(domain);
  const int64_t all_ones = domain.width == 1 ? 1 : -1;
  if (a.exact() && (a.lo == 0 || a.lo == all_ones)) return a;
  IntFacts result = IntFacts::of(domain);
  result.non_zero = a.non_zero;
  return result.normalized();
}

IntFacts leading_zeros(const IntFacts& a, const IntDomain& domain) {
  const auto width = static_cast<int64_t>(domain.width);
  if (a.empty()) return IntFacts::range(0, width);
  if (a.hi < 0) return IntFacts::exactly(0);
  const auto zeros = [&](int64_t value) {
    return width - static_cast<int64_t>(std::bit_width(static_cast<uint64_t>(value)));
  };
  if (a.lo >= 0) return IntFacts::range(zeros(a.hi), zeros(a.lo));
  return IntFacts::range(0, a.non_zero ? width - 1 : width);
}

IntFacts trailing_zeros(const IntFacts& a, const IntDomain& domain) {
  const auto width = static_cast<int64_t>(domain.width);
  if (a.empty()) return IntFacts::range(0, width);
  if (a.exact() && a.lo == 0) return IntFacts::exactly(width);
  const int64_t least = std::min(static_cast<int64_t>(known_zeros(a)), width);
  if (!a.non_zero) return IntFacts::range(least, width);
  const int64_t most =
      a.lo > 0 ? static_cast<int64_t>(std::bit_width(static_cast<uint64_t>(a.hi))) - 1 : width - 1;
  return IntFacts::range(std::min(least, most), most);
}

IntFacts population(const IntFacts& a, const IntDomain& domain) {
  const auto width = static_cast<int64_t>(domain.width);
  if (a.empty()) return IntFacts::range(0, width);
  if (a.power_of_two) return IntFacts::exactly(1);
  int64_t most = width;
  if (a.lo >= 0) {
    most = static_cast<int64_t>(std::bit_width(static_cast<uint64_t>(a.hi)));
  }
  const auto zeros = static_cast<int64_t>(known_zeros(a));
  most = std::max<int64_t>(most - std::min(zeros, most), a.non_zero ? 1 : 0);
  return IntFacts::range(a.non_zero ? 1 : 0, most);
}

IntFacts sign(const IntFacts& a, const IntDomain& domain) {
  if (a.empty() || domain.width == 1) return IntFacts::of(domain);
  const auto of = [](int64_t value) -> int64_t { return value < 0 ? -1 : value > 0 ? 1 : 0; };
  IntFacts result = IntFacts::range(of(a.lo), of(a.hi));
  result.non_zero = a.non_zero;
  return result.normalized();
}

IntFacts bit_field_unsigned(unsigned width, const IntDomain& to) {
  if (width == 0) return IntFacts::exactly(0);
  if (width >= to.width && to.width != 1) return IntFacts::of(to);
  if (width >= 63) return IntFacts::range(0, kMax);
  return truncate(IntFacts::range(0, (int64_t{1} << width) - 1), to);
}

IntFacts bit_field_signed(unsigned width, const IntDomain& to) {
  if (width == 0) return IntFacts::exactly(0);
  if (width >= to.width || to.width == 1) return IntFacts::of(to);
  const int64_t top = int64_t{1} << (width - 1);
  return IntFacts::range(-top, top - 1);
}

IntFacts truncate(const IntFacts& a, const IntDomain& to) {
  if (a.empty()) return IntFacts::of(to);
  if (a.lo >= to.lo && a.hi <= to.hi) return a;
  return fit(a.lo, a.hi, a.divisor, to.wrapping());
}

IntFacts sign_extend(const IntFacts& a, const IntDomain& from) {
  if (from.width != 1) return a;
  return sub(IntFacts::exactly(0), a, IntDomain{});
}

IntFacts zero_extend(const IntFacts& a, const IntDomain& from) {
  if (a.empty()) return {};
  return as_unsigned(a, from);
}

IntFacts induction(const IntFacts& lo, const IntFacts& hi, const IntFacts& step) {
  if (unusable(lo, hi)) return {};
  IntFacts result;
  result.lo = lo.lo;
  result.hi = hi.hi == kMin ? kMin : hi.hi - 1;
  result.divisor = std::gcd(lo.divisor, step.divisor);
  const IntFacts normal = result.normalized();
  return normal.empty() ? IntFacts{} : normal;
}

}  // namespace loom::facts
