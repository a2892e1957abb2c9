// Decode and encode: what a payload stands for under a constant schema.
#include <algorithm>
#include <cmath>

#include "loom/base/check.h"
#include "loom/dialect/bit_stream.h"
#include "loom/dialect/eval_vector_parts.h"
#include "loom/dialect/op_info.h"
#include "loom/dialect/records.h"
#include "loom/dialect/schema.h"

namespace loom::detail {
namespace {

using enum OpKind;
using enum EvalStatus;

static_assert(operand_slot(VectorDecode, "schema") == operand_slot(VectorEncode, "schema") &&
              operand_slot(VectorDecode, "aux") == operand_slot(VectorEncode, "aux") &&
              attr_slot(VectorDecode, "keys") == attr_slot(VectorEncode, "keys"));

// Null when the operation has no auxiliary of that name.
const LaneValues* auxiliary(const VectorCall& call, std::string_view name) {
  constexpr unsigned kKeys = attr_slot(VectorDecode, "keys");
  if (!call.module.has_attr(call.op, kKeys)) return nullptr;
  const auto keys = call.module.attr(call.op, kKeys).entries;
  for (size_t i = 0; i < keys.size(); ++i) {
    if (call.module.strings.text(keys[i].key) != name) continue;
    return &call.operands[operand_slot(VectorDecode, "aux") + i];
  }
  return nullptr;
}

// The auxiliary of element `i` of `count`.
bool auxiliary_of(const LaneValues* values, size_t group, size_t i, size_t count, double& out) {
  const size_t run = values == nullptr ? 0 : auxiliary_run(values->lanes.size(), group, count);
  if (run == 0) return false;
  out = to_double(values->at(i / run));
  return true;
}

// The codes of a payload, one per element; false where the payload does not hold them.
bool unpack(const LaneValues& payload, CodePacking packing, unsigned bits,
            std::vector<uint64_t>& out) {
  const unsigned lane_bits = scalar_bits(payload.element);
  if (packing == CodePacking::Lanes && payload.lanes.size() == out.size() && bits <= lane_bits) {
    out = payload.lanes;
    return true;
  }
  if (payload.lanes.size() * lane_bits != out.size() * bits) return false;
  BitStream stream;
  for (const uint64_t lane : payload.lanes) stream.append(lane, lane_bits);
  for (size_t i = 0; i < out.size(); ++i) {
    out[i] = stream.field((packing == CodePacking::BigNibbles ? i ^ 1 : i) * bits, bits);
  }
  return true;
}

bool pack(std::span<const uint64_t> codes, CodePacking packing, unsigned bits,
          LaneValues& payload) {
  const unsigned lane_bits = scalar_bits(payload.element);
  if (packing == CodePacking::Lanes && payload.lanes.size() == codes.size() && bits <= lane_bits) {
    const uint64_t mask = bits == 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1;
    std::ranges::transform(codes, payload.lanes.begin(), [&](uint64_t c) { return c & mask; });
    return true;
  }
  if (payload.lanes.size() * lane_bits != codes.size() * bits) return false;
  BitStream stream;
  for (size_t i = 0; i < codes.size(); ++i) {
    stream.append(codes[packing == CodePacking::BigNibbles ? i ^ 1 : i], bits);
  }
  for (size_t i = 0; i < payload.lanes.size(); ++i) {
    payload.lanes[i] = stream.field(i * lane_bits, lane_bits);
  }
  return true;
}

// Arithmetic that rounds to the result's type after each step.
class Rounded {
 public:
  explicit Rounded(ScalarKind kind) : kind_(kind) {}
  ScalarValue of(double value) const { return from_double(kind_, value); }
  ScalarValue apply(OpKind op, ScalarValue a, ScalarValue b) const {
    const ScalarValue operands[] = {a, b};
    ScalarValue result;
    LOOM_CHECK(evaluate(op, {}, operands, kind_, result) == Ok, "float arithmetic is total");
    return result;
  }
  ScalarValue mul(ScalarValue a, ScalarValue b) const { return apply(ScalarMulF, a, b); }
  ScalarValue add(ScalarValue a, ScalarValue b) const { return apply(ScalarAddF, a, b); }
  ScalarValue sub(ScalarValue a, ScalarValue b) const { return apply(ScalarSubF, a, b); }

 private:
  ScalarKind kind_;
};

EvalStatus decode_operand(const VectorCall& call, const OperandSchema& schema, LaneValues& result) {
  if (!schema.settled() || !is_float(result.element)) return NotEvaluable;
  const size_t count = result.lanes.size();
  std::vector<uint64_t> codes(count);
  if (!unpack(call.operands[0], schema.packing, schema.format->bits, codes)) return NotEvaluable;
  const Rounded in(result.element);
  const auto aux = [&](std::string_view name, size_t i, ScalarValue& out) {
    double value = 0;
    if (!auxiliary_of(auxiliary(call, name), schema.group, i, count, value)) return false;
    out = in.of(value);
    return true;
  };
  for (size_t i = 0; i < count; ++i) {
    const ScalarValue q = in.of(decode_number(*schema.format, codes[i]));
    ScalarValue scale, other;
    ScalarValue value = q;
    if (schema.affine != "none" && !aux("scale", i, scale)) return NotEvaluable;
    if (schema.affine == "scale_only" || schema.affine == "sum_correction") {
      value = in.mul(q, scale);
    } else if (schema.affine == "scale_plus_min" && aux("minimum", i, other)) {
      value = in.add(in.mul(q, scale), other);
    } else if (schema.affine == "scale_plus_zero_point" && aux("zero_point", i, other)) {
      value = in.mul(in.sub(q, other), scale);
    } else if (schema.affine == "scale_plus_bias" && aux("bias", i, other)) {
      value = in.add(in.mul(q, scale), other);
    } else if (schema.affine == "super_scale_times_subscale" && aux("secondary_scale", i, other)) {
      value = in.mul(q, in.mul(other, scale));
    } else if (schema.affine != "none") {
      return NotEvaluable;
    }
    result.lanes[i] = value.bits;
  }
  return Ok;
}

// Nearest even, held to the format's range; a NaN becomes 0 in an integer format.
std::optional<uint64_t> encode_number(const NumericFormat& format, double value) {
  using Kind = NumericFormat::Kind;
  if (format.kind != Kind::Signed && format.kind != Kind::Unsigned) {
    const auto kind = stored_as(format);
    return kind ? std::optional(from_double(*kind, value).bits) : std::nullopt;
  }
  if (std::isnan(value)) return 0;
  const double span = std::ldexp(1.0, format.bits - (format.kind == Kind::Signed ? 1 : 0));
  const double least = format.kind == Kind::Signed ? -span : 0.0;
  const double held = std::clamp(std::nearbyint(value), least, span - 1.0);
  return static_cast<uint64_t>(static_cast<int64_t>(held));
}

EvalStatus encode_operand(const VectorCall& call, const Attr& spec, const OperandSchema& schema,
                          LaneValues& result) {
  const std::string_view rounding = schema_word(call.module, spec, "rounding");
  const bool nearest = rounding.empty() || rounding == "none" || rounding == "nearest_even";
  const bool scaled = schema.affine == "scale_only";
  if (!schema.settled() || !nearest || !(scaled || schema.affine == "none")) return NotEvaluable;
  const LaneValues& source = call.operands[0];
  if (!is_float(source.element)) return NotEvaluable;
  const size_t count = source.lanes.size();
  std::vector<uint64_t> codes(count);
  for (size_t i = 0; i < count; ++i) {
    ScalarValue value = source.at(i);
    double scale = 1;
    if (scaled && !auxiliary_of(auxiliary(call, "scale"), schema.group, i, count, scale)) {
      return NotEvaluable;
    }
    if (scaled) {
      const Rounded in(source.element);
      if (scale == 0) return ContractViolation;
      value = in.apply(ScalarDivF, value, in.of(scale));
    }
    const auto code = encode_number(*schema.format, to_double(value));
    if (!code) return NotEvaluable;
    codes[i] = *code;
  }
  return pack(codes, schema.packing, schema.format->bits, result) ? Ok : NotEvaluable;
}

EvalStatus decode_records(const VectorCall& call, std::string_view family, LaneValues& result) {
  const LaneValues& payload = call.operands[0];
  if (call.module.has_attr(call.op, attr_slot(VectorDecode, "keys")) || !is_float(result.element)) {
    return NotEvaluable;
  }
  BitStream stream;
  for (const uint64_t lane : payload.lanes) stream.append(lane, scalar_bits(payload.element));
  std::vector<uint8_t> bytes(stream.size() / 8);
  for (size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<uint8_t>(stream.field(8 * i, 8));
  }
  std::vector<RecordElement> elements;
  if (!read_records(family, bytes, elements) || elements.size() != result.lanes.size()) {
    return NotEvaluable;
  }
  const Rounded in(result.element);
  const auto half = [&](uint16_t bits) {
    return in.of(to_double(from_bits(ScalarKind::F16, bits)));
  };
  for (size_t i = 0; i < elements.size(); ++i) {
    const RecordElement& element = elements[i];
    ScalarValue scale = half(element.scale);
    if (element.has_subscale) scale = in.mul(scale, in.of(element.subscale));
    ScalarValue value = in.mul(scale, in.of(element.code));
    if (element.has_minimum) {
      value = in.sub(value, in.mul(half(element.minimum_scale), in.of(element.minimum)));
    }
    result.lanes[i] = value.bits;
  }
  return Ok;
}

}  // namespace

EvalStatus code(OpKind kind, const VectorCall& call, std::span<LaneValues> results) {
  if (kind != VectorDecode && kind != VectorEncode) return NotEvaluable;
  const Module& module = call.module;
  const Attr* schema =
      constant_schema(module, module.operand(call.op, operand_slot(VectorDecode, "schema")));
  if (schema == nullptr) return NotEvaluable;
  const std::string_view family = schema_family(module, *schema);
  if (is_record_family(family)) {
    return kind == VectorDecode ? decode_records(call, family, results[0]) : NotEvaluable;
  }
  const OperandSchema operand = read_operand_schema(module, *schema);
  return kind == VectorDecode ? decode_operand(call, operand, results[0])
                              : encode_operand(call, *schema, operand, results[0]);
}

}  // namespace loom::detail
