#include "loom/dialect/bit_stream.h"
#include "loom/dialect/eval_vector_parts.h"
#include "loom/dialect/op_info.h"

namespace loom::detail {
namespace {

using enum OpKind;
using enum EvalStatus;

uint64_t low_bits(uint64_t value, unsigned width) {
  return width >= 64 ? value : value & ((uint64_t{1} << width) - 1);
}

uint64_t sign_extended(uint64_t value, unsigned width) {
  const unsigned unused = 64 - width;
  return static_cast<uint64_t>(static_cast<int64_t>(value << unused) >> unused);
}

// Writes the low `from` bits of every source lane to a stream and reads `to` bits for every lane.
EvalStatus repack(const LaneValues& source, unsigned from, unsigned to, bool is_signed,
                  LaneValues& result) {
  if (source.lanes.size() * from != result.lanes.size() * to) return ContractViolation;
  BitStream stream;
  for (const uint64_t lane : source.lanes) stream.append(lane, from);
  for (size_t i = 0; i < result.lanes.size(); ++i) {
    const uint64_t field = stream.field(i * to, to);
    result.lanes[i] = from_bits(result.element, is_signed ? sign_extended(field, to) : field).bits;
  }
  return Ok;
}

EvalStatus extract_field(const VectorCall& call, bool is_signed, LaneValues& result) {
  const auto offset = static_cast<unsigned>(
      call.module.attr(call.op, attr_slot(VectorBitfieldExtractU, "offset")).value());
  const auto width = static_cast<unsigned>(
      call.module.attr(call.op, attr_slot(VectorBitfieldExtractU, "width")).value());
  for (size_t i = 0; i < result.lanes.size(); ++i) {
    const uint64_t field = low_bits(call.operands[0].lanes[i] >> offset, width);
    result.lanes[i] =
        from_bits(result.element, is_signed ? sign_extended(field, width) : field).bits;
  }
  return Ok;
}

EvalStatus insert_field(const VectorCall& call, LaneValues& result) {
  const auto offset = static_cast<unsigned>(
      call.module.attr(call.op, attr_slot(VectorBitfieldInsert, "offset")).value());
  const auto width = static_cast<unsigned>(
      call.module.attr(call.op, attr_slot(VectorBitfieldInsert, "width")).value());
  const uint64_t mask = low_bits(~uint64_t{0}, width) << offset;
  for (size_t i = 0; i < result.lanes.size(); ++i) {
    const uint64_t field = call.operands[0].lanes[i] << offset;
    result.lanes[i] = (call.operands[1].lanes[i] & ~mask) | (field & mask);
  }
  return Ok;
}

}  // namespace

EvalStatus reinterpret(OpKind kind, const VectorCall& call, std::span<LaneValues> results) {
  const auto width = [&] {
    static_assert(attr_slot(VectorBitpack, "width") == attr_slot(VectorBitunpackU, "width") &&
                  attr_slot(VectorBitpack, "width") == attr_slot(VectorBitunpackS, "width"));
    return static_cast<unsigned>(
        call.module.attr(call.op, attr_slot(VectorBitpack, "width")).value());
  };
  LaneValues& result = results[0];
  const unsigned to = scalar_bits(result.element);
  switch (kind) {
    case VectorBitcast:
      return repack(call.operands[0], scalar_bits(call.operands[0].element), to, false, result);
    case VectorBitpack:
      return repack(call.operands[0], width(), to, false, result);
    case VectorBitunpackU:
    case VectorBitunpackS:
      return repack(call.operands[0], scalar_bits(call.operands[0].element), width(),
                    kind == VectorBitunpackS, result);
    case VectorBitfieldExtractU:
    case VectorBitfieldExtractS:
      return extract_field(call, kind == VectorBitfieldExtractS, result);
    case VectorBitfieldInsert:
      return insert_field(call, result);
    default:
      return NotEvaluable;
  }
}

}  // namespace loom::detail
