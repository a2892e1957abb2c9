#include "loom/dialect/eval.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "loom/dialect/eval_float.h"
#include "loom/dialect/op_info.h"

namespace loom {
namespace {

using enum OpKind;
using enum EvalStatus;

__extension__ using Int128 = __int128;

bool fits_signed(Int128 value, unsigned bits) {
  const Int128 limit = Int128{1} << (bits - 1);
  return value >= -limit && value < limit;
}

bool fits_unsigned(Int128 value, unsigned bits) {
  return value >= 0 && value < (Int128{1} << bits);
}

EvalStatus wrapped(ScalarKind kind, uint64_t value, ScalarValue& result) {
  result = from_bits(kind, value);
  return Ok;
}

// An index or offset result, which must be representable.
EvalStatus represented(ScalarKind kind, Int128 value, ScalarValue& result) {
  const Int128 least = kind == ScalarKind::Offset ? Int128{0} : -(Int128{1} << 63);
  if (value < least || value >= (Int128{1} << 63)) return ContractViolation;
  return wrapped(kind, static_cast<uint64_t>(value), result);
}

// The mathematical results of a wrapping operation, for its nsw and nuw promises.
EvalStatus modular(ScalarKind kind, uint64_t flags, Int128 as_signed_result,
                   Int128 as_unsigned_result, ScalarValue& result) {
  const unsigned bits = scalar_bits(kind);
  if ((flags & kNsw) != 0 && !fits_signed(as_signed_result, bits)) return ContractViolation;
  if ((flags & kNuw) != 0 && !fits_unsigned(as_unsigned_result, bits)) return ContractViolation;
  return wrapped(kind, static_cast<uint64_t>(as_unsigned_result), result);
}

bool compare(CmpIPredicate predicate, ScalarValue a, ScalarValue b) {
  using enum CmpIPredicate;
  const int64_t x = as_signed(a);
  const int64_t y = as_signed(b);
  switch (predicate) {
    case Eq:
      return a.bits == b.bits;
    case Ne:
      return a.bits != b.bits;
    case Slt:
      return x < y;
    case Sle:
      return x <= y;
    case Sgt:
      return x > y;
    case Sge:
      return x >= y;
    case Ult:
      return a.bits < b.bits;
    case Ule:
      return a.bits <= b.bits;
    case Ugt:
      return a.bits > b.bits;
    case Uge:
      return a.bits >= b.bits;
  }
  return false;
}

EvalStatus shift(OpKind op, uint64_t flags, ScalarValue a, ScalarValue b, ScalarValue& result) {
  const unsigned bits = scalar_bits(a.kind);
  if (b.bits >= bits) return ContractViolation;
  const auto count = static_cast<unsigned>(b.bits);
  if (op == IndexShrS || op == ScalarShrSI) {
    return wrapped(a.kind, static_cast<uint64_t>(as_signed(a) >> count), result);
  }
  if (op == IndexShrU || op == ScalarShrUI) return wrapped(a.kind, a.bits >> count, result);
  const Int128 factor = Int128{1} << count;
  // The unsigned product stays below 2^127: both factors have at most 64 bits and count <= 63.
  return modular(a.kind, flags, as_signed(a) * factor, static_cast<Int128>(a.bits) * factor,
                 result);
}

EvalStatus divide(OpKind op, ScalarValue a, ScalarValue b, ScalarValue& result) {
  if (b.bits == 0) return ContractViolation;
  const ScalarKind kind = a.kind;
  if (op == ScalarDivUI) return wrapped(kind, a.bits / b.bits, result);
  if (op == ScalarRemUI) return wrapped(kind, a.bits % b.bits, result);
  const int64_t x = as_signed(a);
  const int64_t y = as_signed(b);
  if (op == IndexDiv || op == IndexRem) {
    if (x < 0 || y <= 0) return ContractViolation;
  } else if (y == -1 && a.bits == (scalar_mask(kind) >> 1) + 1) {
    return ContractViolation;
  }
  const bool quotient = op == IndexDiv || op == ScalarDivSI;
  return wrapped(kind, static_cast<uint64_t>(quotient ? x / y : x % y), result);
}

// Quotients that round up or down instead of toward zero.
EvalStatus divide_rounded(OpKind op, ScalarValue a, ScalarValue b, ScalarValue& result) {
  if (op == ScalarCeilDivUI) {
    if (b.bits == 0) return ContractViolation;
    return wrapped(a.kind, a.bits / b.bits + (a.bits % b.bits != 0 ? 1 : 0), result);
  }
  ScalarValue quotient;
  if (const EvalStatus status = divide(ScalarDivSI, a, b, quotient); status != Ok) return status;
  const int64_t x = as_signed(a);
  const int64_t y = as_signed(b);
  const bool inexact = x % y != 0;
  const bool negative = (x < 0) != (y < 0);
  uint64_t bits = quotient.bits;
  if (inexact && op == ScalarCeilDivSI && !negative) ++bits;
  if (inexact && op == ScalarFloorDivSI && negative) --bits;
  return wrapped(a.kind, bits, result);
}

EvalStatus rotate(bool left, ScalarValue a, ScalarValue b, ScalarValue& result) {
  const unsigned bits = scalar_bits(a.kind);
  // Widths are powers of two, so the count's value modulo the width is that of its low bits.
  auto count = static_cast<unsigned>(b.bits % bits);
  if (!left) count = (bits - count) % bits;
  if (count == 0) return wrapped(a.kind, a.bits, result);
  return wrapped(a.kind, a.bits << count | a.bits >> (bits - count), result);
}

EvalStatus multiply_add(uint64_t flags, std::span<const ScalarValue> v, ScalarValue& result) {
  const ScalarKind kind = v[0].kind;
  const uint64_t largest = scalar_mask(kind);
  const uint64_t product = v[0].bits * v[1].bits;
  if ((flags & kNuw) != 0 &&
      ((v[0].bits != 0 && v[1].bits > largest / v[0].bits) || v[2].bits > largest - product)) {
    return ContractViolation;
  }
  const Int128 exact = Int128{as_signed(v[0])} * as_signed(v[1]) + as_signed(v[2]);
  if ((flags & kNsw) != 0 && !fits_signed(exact, scalar_bits(kind))) return ContractViolation;
  return wrapped(kind, product + v[2].bits, result);
}

EvalStatus extract(OpKind op, const EvalAttrs& attrs, ScalarValue a, ScalarKind to,
                   ScalarValue& result) {
  const unsigned bits = scalar_bits(a.kind);
  if (attrs.width == 0 || attrs.width > bits || attrs.offset > bits - attrs.width) {
    return NotEvaluable;
  }
  const unsigned above = 64 - attrs.width;
  const uint64_t high = a.bits >> attrs.offset << above;
  return wrapped(to,
                 op == ScalarBitfieldExtractS
                     ? static_cast<uint64_t>(static_cast<int64_t>(high) >> above)
                     : high >> above,
                 result);
}

EvalStatus extreme(OpKind op, ScalarValue a, ScalarValue b, ScalarValue& result) {
  const bool is_unsigned = op == ScalarMinUI || op == ScalarMaxUI;
  const bool least = op == IndexMin || op == ScalarMinSI || op == ScalarMinUI;
  const bool below = is_unsigned ? a.bits < b.bits : as_signed(a) < as_signed(b);
  result = below == least ? a : b;
  return Ok;
}

// Between an address scalar and an integer or the other address scalar.
EvalStatus cast_address(ScalarValue a, ScalarKind to, ScalarValue& result) {
  if (is_address(a.kind) && is_address(to)) return represented(to, as_signed(a), result);
  if (is_address(a.kind)) return wrapped(to, a.bits, result);  // keeps the low bits
  if (a.kind == ScalarKind::I1) return wrapped(to, a.bits, result);
  if (to == ScalarKind::Index) return wrapped(to, static_cast<uint64_t>(as_signed(a)), result);
  return represented(to,
                     static_cast<Int128>(a.kind == ScalarKind::I64 ? Int128{as_signed(a)}
                                                                   : static_cast<Int128>(a.bits)),
                     result);
}

ScalarValue integer_to_float(ScalarValue a, bool is_signed, ScalarKind to) {
  const int64_t value = as_signed(a);
  const bool negative = is_signed && value < 0;
  const uint64_t magnitude = negative ? -static_cast<uint64_t>(value) : a.bits;
  return round_to(to, negative, magnitude, 0);
}

EvalStatus evaluate_cast(OpKind op, ScalarValue a, ScalarKind to, ScalarValue& result) {
  switch (op) {
    case IndexCast:
      return cast_address(a, to, result);
    case ScalarExtSI:
      return wrapped(to, static_cast<uint64_t>(as_signed(a)), result);
    case ScalarExtUI:
    case ScalarTruncI:
    case ScalarBitcast:
      return wrapped(to, a.bits, result);
    case ScalarSIToFP:
    case ScalarUIToFP:
      result = integer_to_float(a, op == ScalarSIToFP, to);
      return Ok;
    default:
      return NotEvaluable;
  }
}

EvalStatus evaluate_unary(OpKind op, ScalarValue a, ScalarKind to, ScalarValue& result) {
  switch (op) {
    case ScalarNegI:
      return wrapped(a.kind, -a.bits, result);
    case ScalarAbsI:
      return wrapped(a.kind, as_signed(a) < 0 ? -a.bits : a.bits, result);
    case ScalarSignI:
      return wrapped(a.kind, static_cast<uint64_t>(int{as_signed(a) > 0} - int{as_signed(a) < 0}),
                     result);
    case ScalarCtlzI:
    case IndexCtlz:
      return wrapped(a.kind,
                     static_cast<uint64_t>(std::countl_zero(a.bits)) + scalar_bits(a.kind) - 64,
                     result);
    case ScalarCttzI:
    case IndexCttz:
      return wrapped(
          a.kind,
          std::min<uint64_t>(static_cast<unsigned>(std::countr_zero(a.bits)), scalar_bits(a.kind)),
          result);
    case ScalarCtpopI:
    case IndexCtpop:
      return wrapped(a.kind, static_cast<uint64_t>(std::popcount(a.bits)), result);
    default:
      return evaluate_cast(op, a, to, result);
  }
}

EvalStatus evaluate_address(OpKind op, std::span<const ScalarValue> operands, ScalarValue& result) {
  const ScalarKind kind = operands.back().kind;
  const Int128 x = as_signed(operands[0]);
  const Int128 y = as_signed(operands[1]);
  switch (op) {
    case IndexAdd:
      return represented(kind, x + y, result);
    case IndexSub:
      return represented(kind, x - y, result);
    case IndexMul:
    case IndexScale:
      return represented(kind, x * y, result);
    case IndexMadd:
      return represented(kind, x * y + as_signed(operands[2]), result);
    default:
      return NotEvaluable;
  }
}

EvalStatus evaluate_binary(OpKind op, uint64_t flags, ScalarValue a, ScalarValue b,
                           ScalarValue& result) {
  const Int128 x = as_signed(a);
  const Int128 y = as_signed(b);
  const auto ux = static_cast<Int128>(a.bits);
  const auto uy = static_cast<Int128>(b.bits);
  switch (op) {
    case ScalarAddI:
      return modular(a.kind, flags, x + y, ux + uy, result);
    case ScalarSubI:
      return modular(a.kind, flags, x - y, ux - uy, result);
    case ScalarMulI: {
      // The full unsigned product can need 128 bits, so its range is checked by division.
      const uint64_t largest = scalar_mask(a.kind);
      if ((flags & kNuw) != 0 && a.bits != 0 && b.bits > largest / a.bits) return ContractViolation;
      return modular(a.kind, flags & kNsw, x * y, static_cast<Int128>(a.bits * b.bits), result);
    }
    case ScalarAndI:
    case IndexAnd:
      return wrapped(a.kind, a.bits & b.bits, result);
    case ScalarOrI:
    case IndexOr:
      return wrapped(a.kind, a.bits | b.bits, result);
    case ScalarXorI:
    case IndexXor:
      return wrapped(a.kind, a.bits ^ b.bits, result);
    case ScalarShlI:
    case ScalarShrSI:
    case ScalarShrUI:
    case IndexShl:
    case IndexShrS:
    case IndexShrU:
      return shift(op, flags, a, b, result);
    case ScalarDivSI:
    case ScalarDivUI:
    case ScalarRemSI:
    case ScalarRemUI:
    case IndexDiv:
    case IndexRem:
      return divide(op, a, b, result);
    case ScalarCeilDivSI:
    case ScalarCeilDivUI:
    case ScalarFloorDivSI:
      return divide_rounded(op, a, b, result);
    case ScalarRotLI:
    case IndexRotL:
      return rotate(true, a, b, result);
    case ScalarRotRI:
    case IndexRotR:
      return rotate(false, a, b, result);
    case ScalarMinSI:
    case ScalarMaxSI:
    case ScalarMinUI:
    case ScalarMaxUI:
    case IndexMin:
    case IndexMax:
      return extreme(op, a, b, result);
    default:
      return NotEvaluable;
  }
}

}  // namespace

EvalAttrs eval_attrs(const Module& module, OpId op) {
  const OpInfo& info = op_info(module.op(op).kind);
  EvalAttrs attrs;
  for (unsigned slot = 0; slot < info.attrs.size(); ++slot) {
    if (!module.has_attr(op, slot)) continue;
    const Attr& attr = module.attr(op, slot);
    if (info.attrs[slot].form == AttrForm::Enum) attrs.choice = attr.bits;
    if (info.attrs[slot].form == AttrForm::Flags) attrs.flags = attr.bits;
    if (info.attrs[slot].form == AttrForm::Integer) {
      (info.attrs[slot].name == "width" ? attrs.width : attrs.offset) =
          static_cast<unsigned>(attr.value());
    }
    if (info.attrs[slot].form == AttrForm::Float) attrs.scale = attr.number();
  }
  return attrs;
}

EvalStatus evaluate(OpKind op, const EvalAttrs& attrs, std::span<const ScalarValue> operands,
                    ScalarKind result_kind, ScalarValue& result) {
  if (operands.empty()) return NotEvaluable;
  if (op == ScfSelect) {
    result = operands[0].bits != 0 ? operands[1] : operands[2];
    return Ok;
  }
  if (op == IndexCmp || op == ScalarCmpI) {
    result = {ScalarKind::I1,
              compare(static_cast<CmpIPredicate>(attrs.choice), operands[0], operands[1])};
    return Ok;
  }
  if (op == ScalarBitcast) return evaluate_cast(op, operands[0], result_kind, result);
  if (is_float(operands[0].kind)) {
    return detail::evaluate_float(op, attrs, operands, result_kind, result);
  }
  if (op == ScalarBitfieldExtractU || op == ScalarBitfieldExtractS) {
    return extract(op, attrs, operands[0], result_kind, result);
  }
  if (op == ScalarFmaI) return multiply_add(attrs.flags, operands, result);
  if (operands.size() == 1) return evaluate_unary(op, operands[0], result_kind, result);
  if (op == IndexAdd || op == IndexSub || op == IndexMul || op == IndexMadd || op == IndexScale) {
    return evaluate_address(op, operands, result);
  }
  if (operands.size() == 2) {
    return evaluate_binary(op, attrs.flags, operands[0], operands[1], result);
  }
  return NotEvaluable;
}

}  // namespace loom
