#include "loom/facts/float_facts.h"

#include <cmath>

namespace loom {
namespace {

using F = FloatFacts;

// Magnitudes beyond the largest number become infinite, or the largest number in a format without
// infinities.
FloatFacts rounded(unsigned possible, ScalarKind kind) {
  const auto all = static_cast<uint8_t>(possible);
  if (kind != ScalarKind::F8E4M3) return {all};
  uint8_t kept = all & static_cast<uint8_t>(~F::kInf);
  if ((all & F::kMinusInf) != 0) kept |= F::kMinus;
  if ((all & F::kPlusInf) != 0) kept |= F::kPlus;
  return {kept};
}

unsigned mirrored(unsigned kinds) {
  unsigned out = kinds & F::kNan;
  if ((kinds & F::kMinusInf) != 0) out |= F::kPlusInf;
  if ((kinds & F::kPlusInf) != 0) out |= F::kMinusInf;
  if ((kinds & F::kMinus) != 0) out |= F::kPlus;
  if ((kinds & F::kPlus) != 0) out |= F::kMinus;
  return out;
}

// Calls f with each pair of kinds and joins what it gives.
template <class Function>
unsigned for_each_pair(FloatFacts a, FloatFacts b, Function&& f) {
  unsigned out = 0;
  for (unsigned x = 1; x <= F::kPlusInf; x <<= 1) {
    for (unsigned y = 1; y <= F::kPlusInf; y <<= 1) {
      if (!a.may(static_cast<uint8_t>(x)) || !b.may(static_cast<uint8_t>(y))) continue;
      out |= ((x | y) & F::kNan) != 0 ? F::kNan : f(x, y);
    }
  }
  return out;
}

bool is_inf(unsigned kind) { return (kind & F::kInf) != 0; }
bool is_minus(unsigned kind) { return (kind & (F::kMinus | F::kMinusInf)) != 0; }

unsigned sum(unsigned x, unsigned y) {
  if (is_inf(x) && is_inf(y)) return x == y ? x : unsigned{F::kNan};
  if (is_inf(x)) return x;
  if (is_inf(y)) return y;
  if (x != y) return F::kFinite;
  return x == F::kMinus ? F::kMinus | F::kMinusInf : F::kPlus | F::kPlusInf;
}

unsigned product(unsigned x, unsigned y) {
  unsigned out = F::kPlusInf;
  if (is_inf(x) != is_inf(y)) out |= F::kNan;  // of an infinity and a zero
  if (!is_inf(x) && !is_inf(y)) out |= F::kPlus;
  return is_minus(x) == is_minus(y) ? out : mirrored(out);
}

unsigned quotient(unsigned x, unsigned y) {
  if (is_inf(x) && is_inf(y)) return F::kNan;
  unsigned out = F::kPlus;
  if (is_inf(x)) out = F::kPlusInf;
  // A zero divisor, or overflow.
  if (!is_inf(x) && !is_inf(y)) out = F::kPlus | F::kPlusInf | F::kNan;
  return is_minus(x) == is_minus(y) ? out : mirrored(out);
}

}  // namespace

FloatFacts FloatFacts::of(ScalarKind kind) {
  return {kind == ScalarKind::F8E4M3 ? uint8_t{kNan | kFinite} : kAll};
}

FloatFacts FloatFacts::exactly(double value) {
  if (std::isnan(value)) return {kNan};
  if (std::isinf(value)) return {value < 0 ? kMinusInf : kPlusInf};
  return {std::signbit(value) ? kMinus : kPlus};
}

namespace facts {

FloatFacts add(FloatFacts a, FloatFacts b, ScalarKind kind) {
  return rounded(for_each_pair(a, b, sum), kind);
}
FloatFacts sub(FloatFacts a, FloatFacts b, ScalarKind kind) { return add(a, neg(b), kind); }
FloatFacts mul(FloatFacts a, FloatFacts b, ScalarKind kind) {
  return rounded(for_each_pair(a, b, product), kind);
}
FloatFacts div(FloatFacts a, FloatFacts b, ScalarKind kind) {
  return rounded(for_each_pair(a, b, quotient), kind);
}
FloatFacts fma(FloatFacts a, FloatFacts b, FloatFacts c, ScalarKind kind) {
  const FloatFacts exact{static_cast<uint8_t>(for_each_pair(a, b, product))};
  return rounded(for_each_pair(exact, c, sum), kind);
}
FloatFacts neg(FloatFacts a) { return {static_cast<uint8_t>(mirrored(a.possible))}; }
FloatFacts abs(FloatFacts a) {
  constexpr uint8_t kNegative = F::kMinus | F::kMinusInf;
  return {static_cast<uint8_t>((a.possible | mirrored(a.possible)) & ~kNegative)};
}
FloatFacts either(FloatFacts a, FloatFacts b) { return join(a, b); }
FloatFacts either_number(FloatFacts a, FloatFacts b) {
  FloatFacts out = join(a, b);
  if (!a.may(F::kNan) || !b.may(F::kNan)) out.possible &= static_cast<uint8_t>(~F::kNan);
  return out;
}
FloatFacts sqrt(FloatFacts a) {
  uint8_t out = a.possible & (F::kNan | F::kPlus | F::kPlusInf);
  if (a.may(F::kMinusInf)) out |= F::kNan;
  if (a.may(F::kMinus)) out |= F::kNan | F::kMinus;  // the root of -0 is -0
  return {out};
}
FloatFacts exp(FloatFacts a, ScalarKind kind) {
  unsigned out = a.possible & (F::kNan | F::kPlusInf);
  if (a.may(F::kMinusInf | F::kMinus)) out |= F::kPlus;
  if (a.may(F::kPlus)) out |= F::kPlus | F::kPlusInf;
  return rounded(out, kind);
}
FloatFacts convert(FloatFacts a, ScalarKind kind) {
  unsigned out = a.possible;
  if (a.may(F::kMinus)) out |= F::kMinusInf;
  if (a.may(F::kPlus)) out |= F::kPlusInf;
  return rounded(out, kind);
}
FloatFacts from_integer(bool may_be_negative, ScalarKind kind) {
  // 64 bits fit in the range of all but the narrow formats.
  const bool wide = kind == ScalarKind::F64 || kind == ScalarKind::F32 || kind == ScalarKind::BF16;
  unsigned out = F::kPlus;
  if (!wide) out |= F::kPlusInf;
  if (may_be_negative) out |= mirrored(out);
  return rounded(out, kind);
}

}  // namespace facts

FloatFacts refine(PredicateKind kind, FloatFacts a) {
  switch (kind) {
    case PredicateKind::NotNan:
      return {static_cast<uint8_t>(a.possible & ~F::kNan)};
    case PredicateKind::NotInf:
      return {static_cast<uint8_t>(a.possible & ~F::kInf)};
    case PredicateKind::Finite:
      return {static_cast<uint8_t>(a.possible & F::kFinite)};
    default:
      return a;
  }
}

std::optional<bool> holds(PredicateKind kind, FloatFacts a) {
  const FloatFacts still = refine(kind, a);
  if (a.empty()) return std::nullopt;
  if (still.empty()) return false;
  const bool known = kind == PredicateKind::NotNan || kind == PredicateKind::NotInf ||
                     kind == PredicateKind::Finite;
  return known && still == a ? std::optional(true) : std::nullopt;
}

std::string to_text(FloatFacts facts) {
  static constexpr const char* kNames[] = {"nan", "-inf", "-", "+", "+inf"};
  std::string out;
  for (unsigned i = 0; i < 5; ++i) {
    if (!facts.may(static_cast<uint8_t>(1u << i))) continue;
    if (!out.empty()) out += " ";
    out += kNames[i];
  }
  return out;
}

}  // namespace loom
