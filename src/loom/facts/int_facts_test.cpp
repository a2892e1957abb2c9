// Every rule against brute force: whatever facts say about the operands of an operation must hold
// for its result, for every pair of operand values in a small domain.
#include "loom/facts/int_facts.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstdlib>
#include <functional>
#include <random>
#include <vector>

namespace loom {
namespace {

constexpr int64_t kMin = std::numeric_limits<int64_t>::min();
constexpr int64_t kMax = std::numeric_limits<int64_t>::max();

// The width of the wrapping domain; small enough to enumerate pairs.
constexpr unsigned kWidth = 6;

int64_t wrap(int64_t value, unsigned width = kWidth) {
  const unsigned shift = 64 - width;
  const int64_t high = static_cast<int64_t>(static_cast<uint64_t>(value) << shift);
  return width == 1 ? (value & 1) : high >> shift;
}
int64_t unsigned_of(int64_t value) { return value & ((int64_t{1} << kWidth) - 1); }

std::vector<IntFacts> sample_facts(const IntDomain& domain, unsigned count) {
  std::mt19937 random(7);
  std::vector<IntFacts> all = {IntFacts::of(domain)};
  for (int64_t value : {int64_t{0}, int64_t{1}, int64_t{-1}, int64_t{4}, domain.lo, domain.hi}) {
    all.push_back(IntFacts::exactly(std::max(value, domain.lo)));
  }
  std::uniform_int_distribution<int64_t> value(domain.lo, domain.hi);
  while (all.size() < count) {
    int64_t a = value(random), b = value(random);
    if (a > b) std::swap(a, b);
    IntFacts facts;
    facts.lo = a;
    facts.hi = b;
    const uint64_t divisors[] = {1, 1, 2, 3, 4, 8, 12, 16};
    facts.divisor = divisors[random() % 8];
    facts.non_zero = random() % 3 == 0;
    facts.power_of_two = random() % 6 == 0;
    const IntFacts normal = facts.normalized();
    if (!normal.empty()) all.push_back(normal);
  }
  return all;
}

using Transfer = std::function<IntFacts(const IntFacts&, const IntFacts&)>;
using Exact = std::function<std::optional<int64_t>(int64_t, int64_t)>;

void check_binary(const char* name, const IntDomain& domain, const Transfer& transfer,
                  const Exact& exact) {
  const auto samples = sample_facts(domain, 60);
  for (const IntFacts& a : samples) {
    for (const IntFacts& b : samples) {
      const IntFacts result = transfer(a, b);
      for (int64_t x = a.lo; x <= a.hi; ++x) {
        if (!a.contains(x)) continue;
        for (int64_t y = b.lo; y <= b.hi; ++y) {
          if (!b.contains(y)) continue;
          const auto value = exact(x, y);
          if (!value) continue;
          ASSERT_TRUE(result.contains(*value))
              << name << " " << x << ", " << y << " = " << *value << " for " << to_text(a)
              << " and " << to_text(b) << " gives " << to_text(result);
        }
      }
    }
  }
}

const IntDomain kWrap = IntDomain::bits(kWidth);
const IntDomain kNoWrap = {kWidth, -(1 << (kWidth - 1)), (1 << (kWidth - 1)) - 1, false};
const IntDomain kOffset = {kWidth, 0, 63, false};

std::optional<int64_t> inside(const IntDomain& domain, int64_t value) {
  return value < domain.lo || value > domain.hi ? std::nullopt : std::optional(value);
}

TEST(IntFacts, NormalizedKeepsEveryValueAndTightensToThem) {
  for (const IntFacts& facts : sample_facts(kWrap, 400)) {
    IntFacts loose = facts;
    loose.lo = std::max<int64_t>(facts.lo - 1, kWrap.lo);
    const IntFacts again = loose.normalized();
    for (int64_t x = kWrap.lo; x <= kWrap.hi; ++x) EXPECT_EQ(loose.contains(x), again.contains(x));
    EXPECT_TRUE(facts.contains(facts.lo)) << to_text(facts);
    EXPECT_TRUE(facts.contains(facts.hi)) << to_text(facts);
  }
}

TEST(IntFacts, MeetHoldsWhatBothHoldAndJoinWhatEitherHolds) {
  const auto samples = sample_facts(kWrap, 80);
  for (const IntFacts& a : samples) {
    for (const IntFacts& b : samples) {
      const IntFacts both = meet(a, b);
      const IntFacts either = join(a, b);
      for (int64_t x = kWrap.lo; x <= kWrap.hi; ++x) {
        if (a.contains(x) && b.contains(x)) {
          EXPECT_TRUE(both.contains(x)) << to_text(a) << " and " << to_text(b) << " at " << x;
        }
        EXPECT_TRUE(either.contains(x) || !(a.contains(x) || b.contains(x)));
      }
    }
  }
}

TEST(IntFacts, ArithmeticIsSound) {
  for (const IntDomain& domain : {kWrap, kNoWrap, kOffset}) {
    const auto in = [&](int64_t v) {
      return domain.wraps ? std::optional(wrap(v)) : inside(domain, v);
    };
    using namespace facts;
    check_binary(
        "add", domain, [&](auto& a, auto& b) { return add(a, b, domain); },
        [&](int64_t x, int64_t y) { return in(x + y); });
    check_binary(
        "sub", domain, [&](auto& a, auto& b) { return sub(a, b, domain); },
        [&](int64_t x, int64_t y) { return in(x - y); });
    check_binary(
        "mul", domain, [&](auto& a, auto& b) { return mul(a, b, domain); },
        [&](int64_t x, int64_t y) { return in(x * y); });
    check_binary(
        "neg", domain, [&](auto& a, auto&) { return neg(a, domain); },
        [&](int64_t x, int64_t) { return in(-x); });
  }
  check_binary(
      "abs", kWrap, [](auto& a, auto&) { return facts::abs(a, kWrap); },
      [](int64_t x, int64_t) { return wrap(std::abs(x)); });
}

TEST(IntFacts, DivisionIsSound) {
  check_binary(
      "div", kNoWrap, [](auto& a, auto& b) { return facts::div(a, b); },
      [](int64_t x, int64_t y) { return x < 0 || y <= 0 ? std::nullopt : std::optional(x / y); });
  check_binary(
      "rem", kNoWrap, [](auto& a, auto& b) { return facts::rem(a, b); },
      [](int64_t x, int64_t y) { return x < 0 || y <= 0 ? std::nullopt : std::optional(x % y); });
  const auto legal = [](int64_t x, int64_t y) { return y != 0 && !(x == kWrap.lo && y == -1); };
  check_binary(
      "divsi", kWrap, [](auto& a, auto& b) { return facts::div_signed(a, b, kWrap); },
      [&](int64_t x, int64_t y) { return legal(x, y) ? std::optional(x / y) : std::nullopt; });
  check_binary(
      "remsi", kWrap, [](auto& a, auto& b) { return facts::rem_signed(a, b, kWrap); },
      [&](int64_t x, int64_t y) { return legal(x, y) ? std::optional(x % y) : std::nullopt; });
  check_binary(
      "divui", kWrap, [](auto& a, auto& b) { return facts::div_unsigned(a, b, kWrap); },
      [](int64_t x, int64_t y) {
        return y == 0 ? std::nullopt : std::optional(wrap(unsigned_of(x) / unsigned_of(y)));
      });
  check_binary(
      "remui", kWrap, [](auto& a, auto& b) { return facts::rem_unsigned(a, b, kWrap); },
      [](int64_t x, int64_t y) {
        return y == 0 ? std::nullopt : std::optional(wrap(unsigned_of(x) % unsigned_of(y)));
      });
}

TEST(IntFacts, MinMaxAndBitwiseAreSound) {
  using namespace facts;
  check_binary(
      "minsi", kWrap, [](auto& a, auto& b) { return min_signed(a, b); },
      [](int64_t x, int64_t y) { return std::min(x, y); });
  check_binary(
      "maxsi", kWrap, [](auto& a, auto& b) { return max_signed(a, b); },
      [](int64_t x, int64_t y) { return std::max(x, y); });
  const auto below = [](int64_t x, int64_t y) { return unsigned_of(x) < unsigned_of(y); };
  check_binary(
      "minui", kWrap, [](auto& a, auto& b) { return min_unsigned(a, b); },
      [&](int64_t x, int64_t y) { return below(x, y) ? x : y; });
  check_binary(
      "maxui", kWrap, [](auto& a, auto& b) { return max_unsigned(a, b); },
      [&](int64_t x, int64_t y) { return below(x, y) ? y : x; });
  check_binary(
      "andi", kWrap, [](auto& a, auto& b) { return bit_and(a, b, kWrap); },
      [](int64_t x, int64_t y) { return x & y; });
  check_binary(
      "ori", kWrap, [](auto& a, auto& b) { return bit_or(a, b, kWrap); },
      [](int64_t x, int64_t y) { return x | y; });
  check_binary(
      "xori", kWrap, [](auto& a, auto& b) { return bit_xor(a, b, kWrap); },
      [](int64_t x, int64_t y) { return x ^ y; });
}

TEST(IntFacts, ShiftsAreSound) {
  using namespace facts;
  const auto legal = [](int64_t count) { return count >= 0 && count < kWidth; };
  check_binary(
      "shli", kWrap, [](auto& a, auto& b) { return shift_left(a, b, kWrap); },
      [&](int64_t x, int64_t y) {
        return legal(y) ? std::optional(wrap(x * (int64_t{1} << y))) : std::nullopt;
      });
  check_binary(
      "shrsi", kWrap, [](auto& a, auto& b) { return shift_right_signed(a, b, kWrap); },
      [&](int64_t x, int64_t y) { return legal(y) ? std::optional(x >> y) : std::nullopt; });
  check_binary(
      "shrui", kWrap, [](auto& a, auto& b) { return shift_right_unsigned(a, b, kWrap); },
      [&](int64_t x, int64_t y) {
        return legal(y) ? std::optional(wrap(unsigned_of(x) >> y)) : std::nullopt;
      });
}

TEST(IntFacts, RoundedDivisionIsSound) {
  const auto legal = [](int64_t x, int64_t y) { return y != 0 && !(x == kWrap.lo && y == -1); };
  const auto floor = [](int64_t x, int64_t y) {
    return x / y - (x % y != 0 && (x < 0) != (y < 0) ? 1 : 0);
  };
  check_binary(
      "floordivsi", kWrap, [](auto& a, auto& b) { return facts::floor_div_signed(a, b, kWrap); },
      [&](int64_t x, int64_t y) {
        return legal(x, y) ? std::optional(floor(x, y)) : std::nullopt;
      });
  check_binary(
      "ceildivsi", kWrap, [](auto& a, auto& b) { return facts::ceil_div_signed(a, b, kWrap); },
      [&](int64_t x, int64_t y) {
        return legal(x, y) ? std::optional(floor(x, y) + (x % y != 0 ? 1 : 0)) : std::nullopt;
      });
  check_binary(
      "ceildivui", kWrap, [](auto& a, auto& b) { return facts::ceil_div_unsigned(a, b, kWrap); },
      [](int64_t x, int64_t y) {
        const int64_t ux = unsigned_of(x), uy = unsigned_of(y);
        return y == 0 ? std::nullopt
                      : std::optional(wrap((ux + uy - 1) / std::max<int64_t>(uy, 1)));
      });
}

TEST(IntFacts, BitCountsRotationsAndSignsAreSound) {
  using namespace facts;
  const auto bits = [](int64_t x) { return static_cast<uint64_t>(unsigned_of(x)); };
  check_binary(
      "ctlzi", kWrap, [](auto& a, auto&) { return leading_zeros(a, kWrap); },
      [&](int64_t x, int64_t) { return kWidth - static_cast<int64_t>(std::bit_width(bits(x))); });
  check_binary(
      "cttzi", kWrap, [](auto& a, auto&) { return trailing_zeros(a, kWrap); },
      [&](int64_t x, int64_t) {
        return x == 0 ? int64_t{kWidth} : static_cast<int64_t>(std::countr_zero(bits(x)));
      });
  check_binary(
      "ctpopi", kWrap, [](auto& a, auto&) { return population(a, kWrap); },
      [&](int64_t x, int64_t) { return static_cast<int64_t>(std::popcount(bits(x))); });
  check_binary(
      "signi", kWrap, [](auto& a, auto&) { return sign(a, kWrap); },
      [](int64_t x, int64_t) { return x < 0 ? int64_t{-1} : int64_t{x > 0}; });
  check_binary(
      "rotli", kWrap, [](auto& a, auto&) { return rotate(a, kWrap); },
      [&](int64_t x, int64_t y) {
        const auto by = static_cast<unsigned>(unsigned_of(y)) % kWidth;
        const uint64_t twice = bits(x) << by;
        return wrap(static_cast<int64_t>(twice | twice >> kWidth));
      });
}

TEST(IntFacts, BitFieldsAreSound) {
  for (unsigned to : {1u, 3u, 6u}) {
    const IntDomain domain = IntDomain::bits(to);
    for (unsigned width = 1; width <= to; ++width) {
      for (int64_t x = 0; x < (int64_t{1} << width); ++x) {
        EXPECT_TRUE(facts::bit_field_unsigned(width, domain).contains(wrap(x, to)));
        const int64_t extended = to == 1 ? x : wrap(width == 1 ? -x : wrap(x, width), to);
        EXPECT_TRUE(facts::bit_field_signed(width, domain).contains(extended)) << width << " " << x;
      }
    }
  }
  EXPECT_EQ(to_text(facts::bit_field_unsigned(5, IntDomain::bits(32))), "[0, 31]");
  EXPECT_EQ(to_text(facts::bit_field_signed(5, IntDomain::bits(32))), "[-16, 15]");
}

TEST(IntFacts, WidthChangesAreSound) {
  for (unsigned to : {1u, 3u, 5u}) {
    const IntDomain domain = IntDomain::bits(to);
    check_binary(
        "trunci", kWrap, [&](auto& a, auto&) { return facts::truncate(a, domain); },
        [&](int64_t x, int64_t) { return wrap(x, to); });
  }
  check_binary(
      "extui", kWrap, [](auto& a, auto&) { return facts::zero_extend(a, kWrap); },
      [](int64_t x, int64_t) { return unsigned_of(x); });
  check_binary(
      "extsi", kWrap, [](auto& a, auto&) { return facts::sign_extend(a, kWrap); },
      [](int64_t x, int64_t) { return x; });
  const IntDomain bit = IntDomain::bits(1);
  check_binary(
      "extsi i1", bit, [&](auto& a, auto&) { return facts::sign_extend(a, bit); },
      [](int64_t x, int64_t) { return -x; });
}

constexpr Compare kCompares[] = {Compare::Eq,  Compare::Ne,  Compare::Slt, Compare::Sle,
                                 Compare::Sgt, Compare::Sge, Compare::Ult, Compare::Ule,
                                 Compare::Ugt, Compare::Uge};

bool truth(Compare relation, int64_t x, int64_t y) {
  const uint64_t ux = static_cast<uint64_t>(x), uy = static_cast<uint64_t>(y);
  const bool results[] = {x == y,  x != y, x<y, x <= y, x> y, x >= y, ux<uy, ux <= uy, ux> uy,
                          ux >= uy};
  return results[static_cast<size_t>(relation)];
}

TEST(IntFacts, ComparisonsDecideOnlyWhatHoldsAndRefineKeepsWhatIsTrue) {
  const auto samples = sample_facts(kWrap, 60);
  for (Compare relation : kCompares) {
    for (const IntFacts& a : samples) {
      for (const IntFacts& b : samples) {
        const auto decided = compare(relation, a, b);
        IntFacts ra = a, rb = b;
        refine(relation, ra, rb);
        for (int64_t x = a.lo; x <= a.hi; ++x) {
          if (!a.contains(x)) continue;
          for (int64_t y = b.lo; y <= b.hi; ++y) {
            if (!b.contains(y)) continue;
            const bool holds = truth(relation, x, y);
            ASSERT_EQ(decided.value_or(holds), holds) << x << " " << y;
            if (holds) {
              ASSERT_TRUE(ra.contains(x) && rb.contains(y))
                  << static_cast<int>(relation) << ": " << x << ", " << y << " for " << to_text(a)
                  << " and " << to_text(b) << " gives " << to_text(ra) << " and " << to_text(rb);
            }
          }
        }
        ASSERT_EQ(truth(relation, a.lo, b.lo), !truth(negated(relation), a.lo, b.lo));
        ASSERT_EQ(truth(relation, a.lo, b.lo), truth(swapped(relation), b.lo, a.lo));
      }
    }
  }
}

TEST(IntFacts, AComparisonImpliesOnlyWhatAlwaysFollows) {
  for (Compare known : kCompares) {
    for (Compare asked : kCompares) {
      const auto decided = implied(known, asked);
      bool can_hold = false, can_fail = false;
      for (int64_t x = -2; x <= 2; ++x) {
        for (int64_t y = -2; y <= 2; ++y) {
          if (truth(known, x, y)) (truth(asked, x, y) ? can_hold : can_fail) = true;
        }
      }
      const auto expected = can_hold && can_fail ? std::optional<bool>() : std::optional(can_hold);
      EXPECT_EQ(decided, expected) << static_cast<int>(known) << " " << static_cast<int>(asked);
    }
  }
}

bool predicate_truth(PredicateKind kind, int64_t x, int64_t y, int64_t z) {
  switch (kind) {
    case PredicateKind::Eq:
      return x == y;
    case PredicateKind::Ne:
      return x != y;
    case PredicateKind::Lt:
      return x < y;
    case PredicateKind::Le:
    case PredicateKind::Max:
      return x <= y;
    case PredicateKind::Gt:
      return x > y;
    case PredicateKind::Ge:
    case PredicateKind::Min:
      return x >= y;
    case PredicateKind::Mul:
      return y == 0 ? x == 0 : x % y == 0;
    case PredicateKind::Range:
      return x >= y && x <= z;
    case PredicateKind::Pow2:
      return x > 0 && std::has_single_bit(static_cast<uint64_t>(x));
    default:
      return true;
  }
}

TEST(IntFacts, PredicatesAreDecidedAndRefinedSoundly) {
  const auto samples = sample_facts(IntDomain::bits(4), 24);
  for (unsigned k = 0; k <= static_cast<unsigned>(PredicateKind::Pow2); ++k) {
    const auto kind = static_cast<PredicateKind>(k);
    for (const IntFacts& a : samples) {
      for (const IntFacts& b : samples) {
        for (const IntFacts& c : {samples[0], samples[9], samples[15]}) {
          const IntFacts before[] = {a, b, c};
          const auto decided = holds(kind, before);
          IntFacts after[] = {a, b, c};
          refine(kind, after);
          for (int64_t x = a.lo; x <= a.hi; ++x) {
            for (int64_t y = b.lo; y <= b.hi; ++y) {
              for (int64_t z = c.lo; z <= c.hi; ++z) {
                if (!a.contains(x) || !b.contains(y) || !c.contains(z)) continue;
                const bool is_true = predicate_truth(kind, x, y, z);
                ASSERT_EQ(decided.value_or(is_true), is_true);
                if (!is_true) continue;
                ASSERT_TRUE(after[0].contains(x) && after[1].contains(y) && after[2].contains(z))
                    << predicate_info(kind).text << "(" << x << ", " << y << ", " << z << ")";
              }
            }
          }
        }
      }
    }
  }
}

TEST(IntFacts, InductionVariableStaysInsideTheLoop) {
  for (int64_t lo = -6; lo <= 6; ++lo) {
    for (int64_t hi = -6; hi <= 12; ++hi) {
      for (int64_t step = 1; step <= 5; ++step) {
        const IntFacts iv =
            facts::induction(IntFacts::exactly(lo), IntFacts::exactly(hi), IntFacts::exactly(step));
        for (int64_t i = lo; i < hi; i += step) EXPECT_TRUE(iv.contains(i));
      }
    }
  }
}

TEST(IntFacts, ConclusionsAreAsSharpAsTheReferenceDemands) {
  using namespace facts;
  const IntDomain index = IntDomain::of(ScalarKind::Index);
  const IntDomain i64 = IntDomain::of(ScalarKind::I64);
  IntFacts eights = IntFacts::range(0, 100);
  eights.divisor = 8;
  eights = eights.normalized();
  EXPECT_EQ(to_text(eights), "[0, 96] mul 8");
  EXPECT_EQ(to_text(add(eights, IntFacts::exactly(12), index)), "[12, 108] mul 4");
  EXPECT_EQ(to_text(mul(eights, IntFacts::exactly(-3), index)), "[-288, 0] mul 24");
  EXPECT_EQ(to_text(div(eights, IntFacts::exactly(4))), "[0, 24] mul 2");
  EXPECT_EQ(to_text(rem(eights, IntFacts::exactly(4))), "0");
  EXPECT_EQ(to_text(rem(IntFacts::range(0, 1000), IntFacts::exactly(64))), "[0, 63]");
  EXPECT_EQ(to_text(bit_and(IntFacts{}, IntFacts::exactly(48), i64)), "[0, 48] mul 16");
  EXPECT_EQ(to_text(shift_left(IntFacts::range(0, 3), IntFacts::exactly(4), i64)),
            "[0, 48] mul 16");
  EXPECT_EQ(to_text(shift_left(IntFacts::range(0, kMax), IntFacts::exactly(4), i64)),
            "[-9223372036854775808, 9223372036854775792] mul 16");
  EXPECT_EQ(to_text(shift_right_unsigned(eights, IntFacts::exactly(2), i64)), "[0, 24] mul 2");
  EXPECT_TRUE(bit_or(IntFacts{}, IntFacts::exactly(4), i64).non_zero);
  EXPECT_EQ(to_text(add(IntFacts::range(0, kMax), IntFacts::range(0, kMax), index)),
            "[0, 9223372036854775807]");
  EXPECT_EQ(to_text(mul(IntFacts{}, IntFacts{}, i64)), to_text(IntFacts{}));
  EXPECT_EQ(to_text(neg(IntFacts::exactly(kMin), i64)), to_text(IntFacts::exactly(kMin)));
  EXPECT_EQ(to_text(truncate(IntFacts::range(0, 200), IntDomain::of(ScalarKind::I8))),
            "[-128, 127]");
  EXPECT_EQ(to_text(truncate(IntFacts::range(0, 100), IntDomain::of(ScalarKind::I8))), "[0, 100]");
}

}  // namespace
}  // namespace loom
