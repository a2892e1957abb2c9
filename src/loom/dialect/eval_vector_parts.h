// The families of vector operations that eval_vector.cpp puts together.
#pragma once

#include "loom/dialect/eval_vector.h"

namespace loom::detail {

// One operation and the values of its operands.
struct VectorCall {
  const Module& module;
  OpId op;
  std::span<const LaneValues> operands;

  // The first value of operand group `slot`.
  const LaneValues& group(unsigned slot) const;
  // The places of an index list: operand group `group_slot` and attribute `list_slot`.
  std::vector<int64_t> indices(unsigned group_slot, unsigned list_slot) const;
};

// Each computes the operations of its family and is NotEvaluable for every other.
//
// Broadcast, extract, insert, slice, concat, transpose, shuffle, interleave, deinterleave.
EvalStatus rearrange(OpKind kind, const VectorCall& call, std::span<LaneValues> results);
// Bitcast, bit fields, bit packing.
EvalStatus reinterpret(OpKind kind, const VectorCall& call, std::span<LaneValues> results);
// Reductions, dot products, matrix products.
EvalStatus contract(OpKind kind, const VectorCall& call, std::span<LaneValues> results);
// Decode and encode.
EvalStatus code(OpKind kind, const VectorCall& call, std::span<LaneValues> results);

}  // namespace loom::detail
