#include <algorithm>
#include <cmath>

#include "loom/dialect/eval_vector_parts.h"
#include "loom/dialect/op_info.h"

namespace loom::detail {
namespace {

using enum OpKind;
using enum EvalStatus;

__extension__ using Int128 = __int128;

EvalStatus combine(CombiningKind kind, ScalarValue lane, ScalarValue& accumulator) {
  const ScalarValue operands[] = {accumulator, lane};
  return evaluate(combining_op(kind), {}, operands, accumulator.kind, accumulator);
}

EvalStatus fused(ScalarValue a, ScalarValue b, ScalarValue& accumulator) {
  const ScalarValue operands[] = {a, b, accumulator};
  return evaluate(ScalarFmaF, {}, operands, accumulator.kind, accumulator);
}

EvalStatus reduce(const VectorCall& call, LaneValues& result) {
  const auto kind =
      static_cast<CombiningKind>(call.module.attr(call.op, attr_slot(VectorReduce, "kind")).bits);
  ScalarValue accumulator = call.operands[1].at(0);
  for (size_t i = 0; i < call.operands[0].lanes.size(); ++i) {
    const EvalStatus status = combine(kind, call.operands[0].at(i), accumulator);
    if (status != Ok) return status;
  }
  result.lanes[0] = accumulator.bits;
  return Ok;
}

EvalStatus reduce_axes(const VectorCall& call, LaneValues& result) {
  const auto kind = static_cast<CombiningKind>(
      call.module.attr(call.op, attr_slot(VectorReduceAxes, "kind")).bits);
  const auto axes = call.module.attr(call.op, attr_slot(VectorReduceAxes, "axes")).ints;
  const LaneValues& source = call.operands[0];
  result.lanes = call.operands[1].lanes;
  // How far a step along each axis of the source moves in the result.
  std::vector<size_t> strides(source.shape.size());
  size_t stride = 1;
  for (size_t axis = source.shape.size(); axis-- > 0;) {
    if (std::ranges::find(axes, static_cast<int64_t>(axis)) != axes.end()) continue;
    strides[axis] = stride;
    stride *= static_cast<size_t>(source.shape[axis]);
  }
  for (size_t i = 0; i < source.lanes.size(); ++i) {
    size_t rest = i;
    size_t place = 0;
    for (size_t axis = source.shape.size(); axis-- > 0;) {
      place += rest % static_cast<size_t>(source.shape[axis]) * strides[axis];
      rest /= static_cast<size_t>(source.shape[axis]);
    }
    ScalarValue accumulator = result.at(place);
    const EvalStatus status = combine(kind, source.at(i), accumulator);
    if (status != Ok) return status;
    result.lanes[place] = accumulator.bits;
  }
  return Ok;
}

// Adds the products of `group` neighbours to each lane of the third operand, in lane order.
EvalStatus dot_float(const VectorCall& call, size_t group, LaneValues& result) {
  result.lanes = call.operands[2].lanes;
  const auto widened = [&](unsigned operand, size_t lane) {
    return from_double(result.element, to_double(call.operands[operand].at(lane)));
  };
  for (size_t i = 0; i < result.lanes.size(); ++i) {
    ScalarValue accumulator = result.at(i);
    for (size_t k = i * group; k < (i + 1) * group; ++k) {
      const EvalStatus status = fused(widened(0, k), widened(1, k), accumulator);
      if (status != Ok) return status;
    }
    result.lanes[i] = accumulator.bits;
  }
  return Ok;
}

EvalStatus dot(const VectorCall& call, LaneValues& result) {
  ScalarValue accumulator = call.operands[2].at(0);
  for (size_t i = 0; i < call.operands[0].lanes.size(); ++i) {
    const EvalStatus status = fused(call.operands[0].at(i), call.operands[1].at(i), accumulator);
    if (status != Ok) return status;
  }
  result.lanes[0] = accumulator.bits;
  return Ok;
}

int64_t factor(uint64_t bits, unsigned width, bool is_signed) {
  const unsigned unused = 64 - width;
  const uint64_t high = bits << unused;
  return is_signed ? static_cast<int64_t>(high) >> unused : static_cast<int64_t>(high >> unused);
}

// Four i8 lanes each, or the eight nibbles of one i32 lane each.
EvalStatus dot_integer(const VectorCall& call, bool nibbles, LaneValues& result) {
  static_assert(attr_slot(VectorDot4I, "kind") == attr_slot(VectorDot8I4, "kind"));
  const auto signs =
      static_cast<FactorSigns>(call.module.attr(call.op, attr_slot(VectorDot4I, "kind")).bits);
  const bool signed_a = signs == FactorSigns::SS || signs == FactorSigns::SU;
  const bool signed_b = signs == FactorSigns::SS || signs == FactorSigns::US;
  const auto at = [&](unsigned operand, size_t lane, unsigned k, bool is_signed) {
    const auto& lanes = call.operands[operand].lanes;
    return nibbles ? factor(lanes[lane] >> (4 * k), 4, is_signed)
                   : factor(lanes[4 * lane + k], 8, is_signed);
  };
  for (size_t i = 0; i < result.lanes.size(); ++i) {
    int64_t sum = as_signed(call.operands[2].at(i));
    for (unsigned k = 0; k < (nibbles ? 8 : 4); ++k)
      sum += at(0, i, k, signed_a) * at(1, i, k, signed_b);
    result.lanes[i] = from_bits(result.element, static_cast<uint64_t>(sum)).bits;
  }
  return Ok;
}

EvalStatus dot_f8(const VectorCall& call, LaneValues& result) {
  const auto kind =
      static_cast<DotF8Kind>(call.module.attr(call.op, attr_slot(VectorDot4F8, "kind")).bits);
  const bool bf8_a = kind == DotF8Kind::Bf8Fp8 || kind == DotF8Kind::Bf8Bf8;
  const bool bf8_b = kind == DotF8Kind::Fp8Bf8 || kind == DotF8Kind::Bf8Bf8;
  const auto at = [&](unsigned operand, size_t lane, unsigned k, bool bf8) {
    const ScalarKind format = bf8 ? ScalarKind::F8E5M2 : ScalarKind::F8E4M3;
    const ScalarValue value = from_bits(format, call.operands[operand].lanes[lane] >> (8 * k));
    return from_double(result.element, to_double(value));
  };
  result.lanes = call.operands[2].lanes;
  for (size_t i = 0; i < result.lanes.size(); ++i) {
    ScalarValue accumulator = result.at(i);
    for (unsigned k = 0; k < 4; ++k) {
      const EvalStatus status = fused(at(0, i, k, bf8_a), at(1, i, k, bf8_b), accumulator);
      if (status != Ok) return status;
    }
    result.lanes[i] = accumulator.bits;
  }
  return Ok;
}

// --- matrix products ----------------------------------------------------------------------------

struct Product {
  size_t blocks = 1, m = 0, n = 0, k = 0;
};

// The extents that the fragments state. One block is meant where a fact did not reach the product,
// so the lane counts m*k, k*n and m*n decide.
bool extents(const VectorCall& call, Product& out) {
  const size_t a = call.operands[0].lanes.size();
  const size_t b = call.operands[1].lanes.size();
  const size_t c = call.operands[2].lanes.size();
  const auto& lhs = call.operands[0].fragment;
  const auto& rhs = call.operands[1].fragment;
  if (lhs && rhs) {
    if (lhs->columns != rhs->rows || lhs->blocks != rhs->blocks) return false;
    out = {static_cast<size_t>(lhs->blocks), static_cast<size_t>(lhs->rows),
           static_cast<size_t>(rhs->columns), static_cast<size_t>(lhs->columns)};
  } else {
    if (a == 0 || b == 0 || c == 0 || a * c % b != 0) return false;
    const size_t square = a * c / b;
    out.m = static_cast<size_t>(std::llround(std::sqrt(static_cast<double>(square))));
    if (out.m == 0 || out.m * out.m != square) return false;
    out.n = c / out.m;
    out.k = a / out.m;
  }
  return out.blocks * out.m * out.k == a && out.blocks * out.k * out.n == b &&
         out.blocks * out.m * out.n == c;
}

EvalStatus product_lane(const VectorCall& call, const Product& p, size_t lane, bool saturate,
                        ScalarValue& accumulator) {
  const size_t block = lane / (p.m * p.n);
  const size_t row = lane / p.n % p.m;
  const size_t column = lane % p.n;
  const auto lhs = [&](size_t k) { return call.operands[0].at((block * p.m + row) * p.k + k); };
  const auto rhs = [&](size_t k) { return call.operands[1].at((block * p.k + k) * p.n + column); };
  if (is_float(accumulator.kind)) {
    for (size_t k = 0; k < p.k; ++k) {
      const EvalStatus status =
          fused(from_double(accumulator.kind, to_double(lhs(k))),
                from_double(accumulator.kind, to_double(rhs(k))), accumulator);
      if (status != Ok) return status;
    }
    return Ok;
  }
  Int128 sum = as_signed(accumulator);
  for (size_t k = 0; k < p.k; ++k) sum += Int128{as_signed(lhs(k))} * as_signed(rhs(k));
  if (saturate) {
    const Int128 limit = Int128{1} << (scalar_bits(accumulator.kind) - 1);
    sum = std::clamp<Int128>(sum, -limit, limit - 1);
  }
  accumulator = from_bits(accumulator.kind, static_cast<uint64_t>(sum));
  return Ok;
}

EvalStatus product(const VectorCall& call, LaneValues& result) {
  Product p;
  if (!extents(call, p)) return NotEvaluable;
  const bool saturate =
      (flags_of(call.module, call.op, attr_slot(VectorMma, "flags")) & kSaturate) != 0;
  result.lanes = call.operands[2].lanes;
  for (size_t i = 0; i < result.lanes.size(); ++i) {
    ScalarValue accumulator = result.at(i);
    const EvalStatus status = product_lane(call, p, i, saturate, accumulator);
    if (status != Ok) return status;
    result.lanes[i] = accumulator.bits;
  }
  result.fragment = FragmentShape{FragmentRole::Result, static_cast<int64_t>(p.blocks),
                                  static_cast<int64_t>(p.m), static_cast<int64_t>(p.n)};
  return Ok;
}

}  // namespace

EvalStatus contract(OpKind kind, const VectorCall& call, std::span<LaneValues> results) {
  LaneValues& result = results[0];
  switch (kind) {
    case VectorReduce:
      return reduce(call, result);
    case VectorReduceAxes:
      return reduce_axes(call, result);
    case VectorDotF:
      return dot(call, result);
    case VectorDot2F:
      return dot_float(call, 2, result);
    case VectorDot4I:
      return dot_integer(call, false, result);
    case VectorDot8I4:
      return dot_integer(call, true, result);
    case VectorDot4F8:
      return dot_f8(call, result);
    case VectorMma:
      return product(call, result);
    default:
      return NotEvaluable;
  }
}

}  // namespace loom::detail
