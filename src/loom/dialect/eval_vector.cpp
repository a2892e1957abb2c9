#include "loom/dialect/eval_vector.h"

#include <limits>

#include <algorithm>
#include <array>

#include "loom/dialect/eval_vector_parts.h"
#include "loom/dialect/op_info.h"

namespace loom {
namespace detail {

using enum OpKind;
using enum EvalStatus;

__extension__ using Int128 = __int128;

const LaneValues& VectorCall::group(unsigned slot) const {
  const auto sizes = module.group_sizes(op);
  if (sizes.empty()) return operands[slot];
  size_t begin = 0;
  for (unsigned i = 0; i < slot; ++i) begin += sizes[i];
  return operands[begin];
}

std::vector<int64_t> VectorCall::indices(unsigned group_slot, unsigned list_slot) const {
  std::vector<int64_t> places(module.attr(op, list_slot).ints.begin(),
                              module.attr(op, list_slot).ints.end());
  size_t next = 0;
  for (unsigned i = 0; i < group_slot; ++i) next += module.group_sizes(op)[i];
  for (int64_t& place : places) {
    if (place == kDynamicIndex) place = as_signed(operands[next++].at(0));
  }
  return places;
}

namespace {

EvalStatus constant(const VectorCall& call, LaneValues& result) {
  const Attr& literal = call.module.attr(call.op, attr_slot(VectorConstant, "value"));
  const auto value = from_literal(literal, result.element);
  if (!value) return NotEvaluable;
  std::ranges::fill(result.lanes, value->bits);
  return Ok;
}

EvalStatus iota(const VectorCall& call, LaneValues& result) {
  const Int128 base = as_signed(call.operands[0].at(0));
  const Int128 step = as_signed(call.operands[1].at(0));
  const bool is_index = is_address(result.element);
  for (size_t i = 0; i < result.lanes.size(); ++i) {
    const Int128 value = base + static_cast<Int128>(i) * step;
    if (is_index && (value < -(Int128{1} << 63) || value >= (Int128{1} << 63))) {
      return ContractViolation;
    }
    result.lanes[i] = from_bits(result.element, static_cast<uint64_t>(value)).bits;
  }
  return Ok;
}

EvalStatus mask_range(const VectorCall& call, LaneValues& result) {
  const Int128 low = as_signed(call.operands[0].at(0));
  const Int128 high = as_signed(call.operands[1].at(0));
  const Int128 step = as_signed(call.operands[2].at(0));
  for (size_t i = 0; i < result.lanes.size(); ++i) {
    result.lanes[i] = low + static_cast<Int128>(i) * step < high ? 1 : 0;
  }
  return Ok;
}

EvalStatus select(const VectorCall& call, LaneValues& result) {
  for (size_t i = 0; i < result.lanes.size(); ++i) {
    result.lanes[i] = call.operands[call.operands[0].lanes[i] != 0 ? 1 : 2].lanes[i];
  }
  return Ok;
}

EvalStatus table_lookup(const VectorCall& call, LaneValues& result) {
  const LaneValues& table = call.operands[0];
  for (size_t i = 0; i < result.lanes.size(); ++i) {
    const int64_t place = as_signed(call.operands[1].at(i));
    if (place < 0 || static_cast<uint64_t>(place) >= table.lanes.size()) return ContractViolation;
    result.lanes[i] = table.lanes[static_cast<size_t>(place)];
  }
  return Ok;
}

EvalStatus fragment(const VectorCall& call, unsigned blocks, unsigned rows, unsigned columns,
                    LaneValues& result) {
  FragmentShape shape;
  // Every fragment operation names its role first.
  static_assert(attr_slot(VectorFragment, "role") == attr_slot(VectorFragmentRepack, "role"));
  shape.role =
      static_cast<FragmentRole>(call.module.attr(call.op, attr_slot(VectorFragment, "role")).bits);
  const bool has_blocks = call.module.group_sizes(call.op)[blocks] != 0;
  if (has_blocks) shape.blocks = as_signed(call.group(blocks).at(0));
  shape.rows = as_signed(call.group(rows).at(0));
  shape.columns = as_signed(call.group(columns).at(0));
  if (shape.blocks <= 0 || shape.rows <= 0 || shape.columns <= 0) return ContractViolation;
  if (call.operands[0].lanes.size() != result.lanes.size()) return NotEvaluable;
  result.lanes = call.operands[0].lanes;
  result.fragment = shape;
  return Ok;
}

EvalStatus lanewise(OpKind scalar, const VectorCall& call, LaneValues& result) {
  const EvalAttrs attrs = eval_attrs(call.module, call.op);
  std::array<ScalarValue, 3> values;
  const size_t count = call.operands.size();
  if (count > values.size()) return NotEvaluable;
  for (size_t i = 0; i < result.lanes.size(); ++i) {
    for (size_t k = 0; k < count; ++k) values[k] = call.operands[k].at(i);
    ScalarValue value;
    const EvalStatus status =
        evaluate(scalar, attrs, std::span(values).first(count), result.element, value);
    if (status != Ok) return status;
    result.lanes[i] = value.bits;
  }
  return Ok;
}

EvalStatus construct(OpKind kind, const VectorCall& call, LaneValues& result) {
  switch (kind) {
    case VectorConstant:
      return constant(call, result);
    case VectorSplat:
      std::ranges::fill(result.lanes, call.operands[0].lanes[0]);
      return Ok;
    case VectorIota:
      return iota(call, result);
    case VectorMaskRange:
      return mask_range(call, result);
    case VectorFromElements:
      for (size_t i = 0; i < result.lanes.size(); ++i) {
        result.lanes[i] = call.operands[i].lanes[0];
      }
      return Ok;
    case VectorPoison:
    case VectorEmpty:
      std::ranges::fill(result.lanes, 0);
      return Ok;
    case VectorSelect:
      return select(call, result);
    case VectorTableLookup:
      return table_lookup(call, result);
    case VectorFragment:
      return fragment(call, operand_slot(VectorFragment, "blocks"),
                      operand_slot(VectorFragment, "rows"), operand_slot(VectorFragment, "cols"),
                      result);
    case VectorFragmentRepack:
      return fragment(call, operand_slot(VectorFragmentRepack, "blocks"),
                      operand_slot(VectorFragmentRepack, "rows"),
                      operand_slot(VectorFragmentRepack, "cols"), result);
    default:
      return NotEvaluable;
  }
}

std::array<std::optional<OpKind>, kOpKindCount> lanewise_table() {
  std::array<std::optional<OpKind>, kOpKindCount> table;
  constexpr std::string_view kPrefix = "vector.";
  for (const OpKind kind : kAllOpKinds) {
    const std::string_view name = op_info(kind).name;
    if (!name.starts_with(kPrefix)) continue;
    const auto scalar = op_from_name("scalar." + std::string(name.substr(kPrefix.size())));
    // These share a name, but are not the same in every lane or need their own attributes.
    const bool other = kind == VectorConstant || kind == VectorPoison || kind == VectorBitcast ||
                       kind == VectorBitfieldExtractU || kind == VectorBitfieldExtractS;
    if (scalar && !other) table[static_cast<size_t>(kind)] = scalar;
  }
  return table;
}

}  // namespace
}  // namespace detail

size_t lane_count(std::span<const int64_t> shape) {
  size_t count = 1;
  for (const int64_t extent : shape) count *= static_cast<size_t>(extent);
  return count;
}

std::optional<OpKind> lanewise_scalar_op(OpKind kind) {
  static const auto table = detail::lanewise_table();
  return table[static_cast<size_t>(kind)];
}

OpKind combining_op(CombiningKind kind) {
  using enum OpKind;
  static constexpr OpKind kOps[] = {ScalarAddI,     ScalarAddF,    ScalarMulI,   ScalarMulF,
                                    ScalarMinSI,    ScalarMaxSI,   ScalarMinUI,  ScalarMaxUI,
                                    ScalarAndI,     ScalarOrI,     ScalarXorI,   ScalarMinimumF,
                                    ScalarMaximumF, ScalarMinNumF, ScalarMaxNumF};
  return kOps[static_cast<size_t>(kind)];
}

std::optional<OpKind> combining_op(AtomicKind kind) {
  using enum OpKind;
  static constexpr OpKind kOps[] = {ScalarAddI,    ScalarAddF,   ScalarSubI,     ScalarAndI,
                                    ScalarOrI,     ScalarXorI,   ScalarMinSI,    ScalarMaxSI,
                                    ScalarMinUI,   ScalarMaxUI,  ScalarMinimumF, ScalarMaximumF,
                                    ScalarMinNumF, ScalarMaxNumF};
  if (kind < AtomicKind::AddI) return std::nullopt;
  return kOps[static_cast<size_t>(kind) - static_cast<size_t>(AtomicKind::AddI)];
}

// The value that changes nothing when combined.
ScalarValue neutral_element(CombiningKind kind, ScalarKind type) {
  const uint64_t mask = scalar_mask(type);
  const uint64_t sign = mask ^ (mask >> 1);
  switch (kind) {
    case CombiningKind::AddI:
    case CombiningKind::OrI:
    case CombiningKind::XorI:
    case CombiningKind::MaxUI:
      return from_bits(type, 0);
    case CombiningKind::AddF:
      return from_double(type, -0.0);
    case CombiningKind::MulI:
      return from_bits(type, 1);
    case CombiningKind::MulF:
      return from_double(type, 1.0);
    case CombiningKind::MinSI:
      return from_bits(type, mask ^ sign);
    case CombiningKind::MaxSI:
      return from_bits(type, sign);
    case CombiningKind::MinUI:
    case CombiningKind::AndI:
      return from_bits(type, mask);
    case CombiningKind::MinimumF:
    case CombiningKind::MinNumF:
      return from_double(type, std::numeric_limits<double>::infinity());
    case CombiningKind::MaximumF:
    case CombiningKind::MaxNumF:
      return from_double(type, -std::numeric_limits<double>::infinity());
  }
  return from_bits(type, 0);
}

EvalStatus evaluate_vector(const Module& module, OpId op, std::span<const LaneValues> operands,
                           std::span<LaneValues> results) {
  const OpKind kind = module.op(op).kind;
  if (results.empty()) return EvalStatus::NotEvaluable;
  for (unsigned i = 0; i < results.size(); ++i) {
    results[i].element = module.types[module.type_of(module.result(op, i))].element;
    results[i].lanes.assign(lane_count(results[i].shape), 0);
    results[i].fragment.reset();
  }
  const detail::VectorCall call{module, op, operands};
  if (const auto scalar = lanewise_scalar_op(kind)) {
    return detail::lanewise(*scalar, call, results[0]);
  }
  using Part = EvalStatus (*)(OpKind, const detail::VectorCall&, std::span<LaneValues>);
  static constexpr Part kParts[] = {
      [](OpKind k, const detail::VectorCall& c, std::span<LaneValues> r) {
        return detail::construct(k, c, r[0]);
      },
      detail::rearrange, detail::reinterpret, detail::contract, detail::code};
  for (const Part part : kParts) {
    if (const EvalStatus status = part(kind, call, results); status != EvalStatus::NotEvaluable) {
      return status;
    }
  }
  return EvalStatus::NotEvaluable;
}

}  // namespace loom
