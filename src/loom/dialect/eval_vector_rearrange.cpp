#include <algorithm>

#include "loom/dialect/eval_vector_parts.h"
#include "loom/dialect/op_info.h"

namespace loom::detail {
namespace {

using enum OpKind;
using enum EvalStatus;

using Shape = std::vector<int64_t>;

// The position of each axis of lane `lane`.
Shape position_of(size_t lane, const Shape& shape) {
  Shape position(shape.size());
  for (size_t axis = shape.size(); axis-- > 0;) {
    position[axis] = static_cast<int64_t>(lane % static_cast<size_t>(shape[axis]));
    lane /= static_cast<size_t>(shape[axis]);
  }
  return position;
}

size_t lane_of(std::span<const int64_t> position, const Shape& shape) {
  size_t lane = 0;
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    lane = lane * static_cast<size_t>(shape[axis]) + static_cast<size_t>(position[axis]);
  }
  return lane;
}

// Fills every lane of `result` with the lane of `source` that `place(position)` names.
template <class F>
EvalStatus permute(const LaneValues& source, LaneValues& result, F&& place) {
  for (size_t i = 0; i < result.lanes.size(); ++i) {
    result.lanes[i] = source.lanes[lane_of(place(position_of(i, result.shape)), source.shape)];
  }
  return Ok;
}

EvalStatus broadcast(const LaneValues& source, LaneValues& result) {
  const size_t grown = result.shape.size() - source.shape.size();
  for (size_t axis = 0; axis < source.shape.size(); ++axis) {
    if (source.shape[axis] != 1 && source.shape[axis] != result.shape[grown + axis]) {
      return ContractViolation;
    }
  }
  return permute(source, result, [&](Shape position) {
    position.erase(position.begin(), position.begin() + static_cast<std::ptrdiff_t>(grown));
    for (size_t axis = 0; axis < position.size(); ++axis) {
      if (source.shape[axis] == 1) position[axis] = 0;
    }
    return position;
  });
}

// The first lane behind leading indices, and how many lanes are behind them.
bool tail(const Shape& indices, const Shape& shape, size_t& first, size_t& count) {
  for (size_t axis = 0; axis < indices.size(); ++axis) {
    if (indices[axis] < 0 || indices[axis] >= shape[axis]) return false;
  }
  count = lane_count(std::span(shape).subspan(indices.size()));
  first = lane_of(indices, Shape(shape.begin(), shape.begin() + std::ssize(indices))) * count;
  return true;
}

EvalStatus extract(const VectorCall& call, LaneValues& result) {
  const LaneValues& source = call.operands[0];
  size_t first = 0;
  size_t count = 0;
  const Shape places =
      call.indices(operand_slot(VectorExtract, "index"), attr_slot(VectorExtract, "static_index"));
  if (!tail(places, source.shape, first, count) || count != result.lanes.size()) {
    return ContractViolation;
  }
  std::copy_n(source.lanes.begin() + static_cast<std::ptrdiff_t>(first), count,
              result.lanes.begin());
  return Ok;
}

EvalStatus insert(const VectorCall& call, LaneValues& result) {
  const LaneValues& part = call.operands[0];
  size_t first = 0;
  size_t count = 0;
  const Shape places =
      call.indices(operand_slot(VectorInsert, "index"), attr_slot(VectorInsert, "static_index"));
  if (!tail(places, result.shape, first, count) || count != part.lanes.size()) {
    return ContractViolation;
  }
  result.lanes = call.operands[1].lanes;
  std::ranges::copy(part.lanes, result.lanes.begin() + static_cast<std::ptrdiff_t>(first));
  return Ok;
}

EvalStatus slice(const VectorCall& call, LaneValues& result) {
  const LaneValues& source = call.operands[0];
  const Shape offsets =
      call.indices(operand_slot(VectorSlice, "index"), attr_slot(VectorSlice, "static_index"));
  for (size_t axis = 0; axis < offsets.size(); ++axis) {
    if (offsets[axis] < 0 || result.shape[axis] > source.shape[axis] ||
        offsets[axis] > source.shape[axis] - result.shape[axis]) {
      return ContractViolation;
    }
  }
  return permute(source, result, [&](Shape position) {
    for (size_t axis = 0; axis < position.size(); ++axis) position[axis] += offsets[axis];
    return position;
  });
}

size_t axis_of(const VectorCall& call) {
  static_assert(attr_slot(VectorConcat, "axis") == attr_slot(VectorInterleave, "axis") &&
                attr_slot(VectorConcat, "axis") == attr_slot(VectorDeinterleave, "axis"));
  return static_cast<size_t>(call.module.attr(call.op, attr_slot(VectorConcat, "axis")).value());
}

EvalStatus concat(const VectorCall& call, LaneValues& result) {
  const size_t axis = axis_of(call);
  int64_t total = 0;
  for (const LaneValues& part : call.operands) total += part.shape[axis];
  if (total != result.shape[axis]) return ContractViolation;
  for (size_t i = 0; i < result.lanes.size(); ++i) {
    Shape position = position_of(i, result.shape);
    size_t part = 0;
    while (position[axis] >= call.operands[part].shape[axis]) {
      position[axis] -= call.operands[part++].shape[axis];
    }
    const LaneValues& source = call.operands[part];
    result.lanes[i] = source.lanes[lane_of(position, source.shape)];
  }
  return Ok;
}

EvalStatus transpose(const VectorCall& call, LaneValues& result) {
  const auto permutation =
      call.module.attr(call.op, attr_slot(VectorTranspose, "permutation")).ints;
  return permute(call.operands[0], result, [&](const Shape& position) {
    Shape from(position.size());
    for (size_t i = 0; i < position.size(); ++i) {
      from[static_cast<size_t>(permutation[i])] = position[i];
    }
    return from;
  });
}

EvalStatus shuffle(const VectorCall& call, LaneValues& result) {
  const auto lanes = call.module.attr(call.op, attr_slot(VectorShuffle, "lanes")).ints;
  for (size_t i = 0; i < result.lanes.size(); ++i) {
    result.lanes[i] = call.operands[0].lanes[static_cast<size_t>(lanes[i])];
  }
  return Ok;
}

EvalStatus interleave(const VectorCall& call, LaneValues& result) {
  const size_t axis = axis_of(call);
  if (result.shape[axis] != 2 * call.operands[0].shape[axis]) return ContractViolation;
  for (size_t i = 0; i < result.lanes.size(); ++i) {
    Shape position = position_of(i, result.shape);
    const LaneValues& source = call.operands[static_cast<size_t>(position[axis] % 2)];
    position[axis] /= 2;
    result.lanes[i] = source.lanes[lane_of(position, source.shape)];
  }
  return Ok;
}

EvalStatus deinterleave(const VectorCall& call, std::span<LaneValues> results) {
  const size_t axis = axis_of(call);
  const LaneValues& source = call.operands[0];
  for (size_t odd = 0; odd < results.size(); ++odd) {
    if (source.shape[axis] != 2 * results[odd].shape[axis]) return ContractViolation;
    permute(source, results[odd], [&](Shape position) {
      position[axis] = 2 * position[axis] + static_cast<int64_t>(odd);
      return position;
    });
  }
  return Ok;
}

}  // namespace

EvalStatus rearrange(OpKind kind, const VectorCall& call, std::span<LaneValues> results) {
  switch (kind) {
    case VectorBroadcast:
      return broadcast(call.operands[0], results[0]);
    case VectorExtract:
      return extract(call, results[0]);
    case VectorInsert:
      return insert(call, results[0]);
    case VectorSlice:
      return slice(call, results[0]);
    case VectorConcat:
      return concat(call, results[0]);
    case VectorTranspose:
      return transpose(call, results[0]);
    case VectorShuffle:
      return shuffle(call, results[0]);
    case VectorInterleave:
      return interleave(call, results[0]);
    case VectorDeinterleave:
      return deinterleave(call, results);
    default:
      return NotEvaluable;
  }
}

}  // namespace loom::detail
