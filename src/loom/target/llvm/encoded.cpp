// Encoded payloads: what their codes stand for, and codes for numbers.
#include <llvm/IR/IRBuilder.h>

#include <algorithm>
#include <string_view>

#include "loom/base/check.h"
#include "loom/dialect/encoding_info.h"
#include "loom/dialect/op_info.h"
#include "loom/target/llvm/bit_fields.h"
#include "loom/target/llvm/body.h"
#include "loom/target/llvm/encoded_plan.h"
#include "loom/target/llvm/lanes.h"
#include "loom/target/llvm/op_checks.h"

namespace loom {

using enum OpKind;

namespace {

// One record as its codes and what they are multiplied with and reduced by.
struct RecordParts {
  llvm::Value* codes;               // i8 lanes, signed
  llvm::Value* scales;              // lanes of the result's type, each for a run of codes
  llvm::Value* minimums = nullptr;  // as many; null where there are none
};

// Takes the records of one family apart. `field` gives the bytes of a record's field.
class RecordReader {
 public:
  using Field = std::function<llvm::Value*(unsigned number)>;

  RecordReader(llvm::IRBuilderBase& builder, FloatOps& floats, ScalarKind to)
      : b_(builder), floats_(floats), to_(to) {}

  RecordParts read(std::string_view family, const Field& field) {
    if (family == "ggml.q4_0") {
      return {b_.CreateSub(nibbles(field(1)), bytes(8, 32)), halves(field(0))};
    }
    if (family == "ggml.q8_0") return {field(1), halves(field(0))};
    if (family == "ggml.q4_k") return read_k(field, field(3), nullptr);
    if (family == "ggml.q5_k") return read_k(field, field(4), field(3));
    if (family == "ggml.q6_k") return read_q6_k(field);
    LOOM_CHECK(family == "ggml.q8_1_x4", "not a family of records");
    return {field(1), pick_lanes(b_, halves(field(0)), 4, [](unsigned i) { return 2 * i; })};
  }
  llvm::Value* numbers(llvm::Value* integers, bool is_signed) {
    llvm::Value* const operands[] = {integers};
    return floats_.emit(is_signed ? ScalarSIToFP : ScalarUIToFP, {}, operands, ScalarKind::I8, to_);
  }
  llvm::Value* apply(OpKind op, llvm::Value* x, llvm::Value* y) {
    llvm::Value* const operands[] = {x, y};
    return floats_.emit(op, {}, operands, to_, to_);
  }

 private:
  llvm::Value* bytes(uint64_t value, unsigned lanes) {
    return b_.CreateVectorSplat(lanes, b_.getInt8(static_cast<uint8_t>(value)));
  }
  // The f16 numbers of the bytes, in the result's type.
  llvm::Value* halves(llvm::Value* from) {
    llvm::Value* const bits =
        b_.CreateBitCast(from, llvm::FixedVectorType::get(b_.getInt16Ty(), lanes_of(from) / 2));
    if (to_ == ScalarKind::F16) return bits;
    llvm::Value* const operands[] = {bits};
    const bool narrows = scalar_bits(to_) <= 16;
    return floats_.emit(narrows ? ScalarFPTrunc : ScalarExtF, {}, operands, ScalarKind::F16, to_);
  }
  llvm::Value* low(llvm::Value* from, uint64_t mask) { return b_.CreateAnd(from, mask); }
  // The low nibbles of all bytes, then their high ones.
  llvm::Value* nibbles(llvm::Value* from) {
    llvm::Value* const parts[] = {low(from, 15), b_.CreateLShr(from, 4)};
    return join_lanes(b_, parts);
  }
  llvm::Value* spread(llvm::Value* from, unsigned lanes) {
    return pick_lanes(b_, from, lanes, [](unsigned) { return 0; });
  }

  // The k records with minimums: 8 runs of 32 codes, whose scales and minimums take 6 bits each.
  RecordParts read_k(const Field& field, llvm::Value* payload, llvm::Value* plane) {
    llvm::Value* const packed = field(2);
    const auto part = [&](unsigned first) { return take_lanes(b_, packed, first, 4); };
    const auto top = [&](unsigned first) { return b_.CreateShl(b_.CreateLShr(part(first), 6), 4); };
    llvm::Value* const scales[] = {low(part(0), 63), b_.CreateOr(low(part(8), 15), top(0))};
    llvm::Value* const least[] = {low(part(4), 63), b_.CreateOr(b_.CreateLShr(part(8), 4), top(4))};
    std::vector<llvm::Value*> codes;
    codes.reserve(4);
    for (unsigned chunk = 0; chunk < 4; ++chunk) {
      codes.push_back(nibbles(take_lanes(b_, payload, 32 * chunk, 32)));
    }
    llvm::Value* all = join_lanes(b_, codes);
    if (plane != nullptr) {
      std::vector<llvm::Value*> fifth;
      fifth.reserve(8);
      for (unsigned run = 0; run < 8; ++run) {
        fifth.push_back(b_.CreateShl(low(b_.CreateLShr(plane, run), 1), 4));
      }
      all = b_.CreateOr(all, join_lanes(b_, fifth));
    }
    return {all,
            apply(ScalarMulF, spread(halves(field(0)), 8), numbers(join_lanes(b_, scales), false)),
            apply(ScalarMulF, spread(halves(field(1)), 8), numbers(join_lanes(b_, least), false))};
  }

  RecordParts read_q6_k(const Field& field) {
    std::vector<llvm::Value*> codes;
    codes.reserve(2);
    for (unsigned half = 0; half < 2; ++half) {
      llvm::Value* const lows = nibbles(take_lanes(b_, field(0), 64 * half, 64));
      llvm::Value* const tops = take_lanes(b_, field(1), 32 * half, 32);
      std::vector<llvm::Value*> upper;
      upper.reserve(4);
      for (unsigned q = 0; q < 4; ++q) {
        upper.push_back(b_.CreateShl(low(b_.CreateLShr(tops, uint64_t{2} * q), 3), 4));
      }
      codes.push_back(b_.CreateSub(b_.CreateOr(lows, join_lanes(b_, upper)), bytes(32, 128)));
    }
    return {join_lanes(b_, codes),
            apply(ScalarMulF, spread(halves(field(3)), 16), numbers(field(2), true))};
  }

  llvm::IRBuilderBase& b_;
  FloatOps& floats_;
  const ScalarKind to_;
};

}  // namespace

// Bytes of a payload; as they were loaded where its load took records apart already.
llvm::Value* BodyLowering::payload_bytes(ValueId payload, unsigned first, unsigned count) {
  const auto pieces = record_pieces_.find(payload.index());
  if (pieces != record_pieces_.end()) {
    const auto piece = pieces->second.find(first);
    if (piece != pieces->second.end() && lanes_of(piece->second) == count) return piece->second;
  }
  const Type& type = module_.types[module_.type_of(payload)];
  const auto bytes = static_cast<unsigned>(*static_lanes(type) * scalar_bits(type.element) / 8);
  llvm::Type* const as_bytes = llvm::FixedVectorType::get(builder_.getInt8Ty(), bytes);
  return take_lanes(builder_, builder_.CreateBitCast(value(payload), as_bytes), first, count);
}

llvm::Value* BodyLowering::decode_records(OpId op, std::string_view family) {
  auto& b = builder_;
  const ValueId payload = module_.operand(op, 0);
  const Type& type = module_.types[module_.type_of(module_.result(op))];
  const StorageRecord record = find_encoding_family(family)->record;
  const auto count = static_cast<unsigned>(*static_lanes(type)) / record.elements;
  const auto fields = record_fields(family);
  RecordReader reader(b, floats_, type.element);
  std::vector<llvm::Value*> decoded;
  for (unsigned i = 0; i < count; ++i) {
    const RecordParts parts = reader.read(family, [&](unsigned number) {
      return payload_bytes(payload, i * record.bytes + fields[number].offset, fields[number].bytes);
    });
    const auto for_each_code = [&](llvm::Value* lanes) {
      const unsigned run = record.elements / lanes_of(lanes);
      return loom::pick_lanes(b, lanes, record.elements,
                              [&](unsigned element) { return element / run; });
    };
    llvm::Value* numbers =
        reader.apply(ScalarMulF, for_each_code(parts.scales), reader.numbers(parts.codes, true));
    if (parts.minimums != nullptr) {
      numbers = reader.apply(ScalarSubF, numbers, for_each_code(parts.minimums));
    }
    decoded.push_back(numbers);
  }
  return join(decoded);
}

// The auxiliary of each of `count` elements, in the type of the numbers.
llvm::Value* BodyLowering::auxiliary(OpId op, std::string_view name, size_t group, ScalarKind to,
                                     unsigned count) {
  const ValueId id = auxiliary_of(module_, op, name);
  const ScalarKind from = module_.types[module_.type_of(id)].element;
  llvm::Value* lanes = value(id);
  if (!lanes->getType()->isVectorTy()) lanes = splat(lanes, 1);
  if (from != to) {
    llvm::Value* const operands[] = {lanes};
    const bool narrows = is_float(from) && scalar_bits(to) <= scalar_bits(from);
    const OpKind conversion = !is_float(from)
                                  ? (from == ScalarKind::I1 ? ScalarUIToFP : ScalarSIToFP)
                              : narrows ? ScalarFPTrunc
                                        : ScalarExtF;
    lanes = floats_.emit(conversion, {}, operands, from, to);
  }
  const size_t run = auxiliary_run(lanes_of(lanes), group, count);
  return loom::pick_lanes(builder_, lanes, count, [&](unsigned i) { return i / run; });
}

llvm::Value* BodyLowering::decode_operand(OpId op, const CodePlan& plan) {
  auto& b = builder_;
  const Type& type = module_.types[module_.type_of(module_.result(op))];
  const auto count = static_cast<unsigned>(*static_lanes(type));
  const OperandSchema& schema = plan.schema;
  const NumericFormat& format = *schema.format;
  llvm::Value* codes = value(module_.operand(op, 0));
  if (codes->getType()->getScalarType()->isFloatingPointTy()) {
    codes = b.CreateBitCast(codes, codes->getType()->getWithNewType(
                                       b.getIntNTy(codes->getType()->getScalarSizeInBits())));
  }
  if (!plan.one_per_lane) {
    const unsigned carrier = std::max(8u, std::bit_ceil(unsigned{format.bits}));
    codes = unpack_fields(b, codes, format.bits, count, false, b.getIntNTy(carrier));
    if (schema.packing == CodePacking::BigNibbles) {
      codes = loom::pick_lanes(b, codes, count, [](unsigned i) { return i ^ 1; });
    }
  }
  llvm::Value* const q = floats_.decode(codes, format, type.element);
  if (schema.affine == "none") return q;
  const auto apply = [&](OpKind kind, llvm::Value* x, llvm::Value* y) {
    llvm::Value* const operands[] = {x, y};
    return floats_.emit(kind, {}, operands, type.element, type.element);
  };
  llvm::Value* const scale = auxiliary(op, "scale", schema.group, type.element, count);
  const std::string_view name = second_auxiliary(schema.affine);
  if (name.empty()) return apply(ScalarMulF, q, scale);
  llvm::Value* const second = auxiliary(op, name, schema.group, type.element, count);
  if (name == "zero_point") return apply(ScalarMulF, apply(ScalarSubF, q, second), scale);
  if (name == "secondary_scale") return apply(ScalarMulF, q, apply(ScalarMulF, second, scale));
  return apply(ScalarAddF, apply(ScalarMulF, q, scale), second);
}

llvm::Value* BodyLowering::encode_operand(OpId op, const CodePlan& plan) {
  auto& b = builder_;
  const Type& from = module_.types[module_.type_of(module_.operand(op, 0))];
  const Type& type = module_.types[module_.type_of(module_.result(op))];
  llvm::Type* const to = llvm_value_type(b.getContext(), type);
  const auto count = static_cast<unsigned>(*static_lanes(from));
  llvm::Value* numbers = value(module_.operand(op, 0));
  if (plan.schema.affine != "none") {
    llvm::Value* const operands[] = {
        numbers, auxiliary(op, "scale", plan.schema.group, from.element, count)};
    numbers = floats_.emit(ScalarDivF, {}, operands, from.element, from.element);
  }
  const unsigned width = plan.schema.format->bits;
  llvm::Value* codes = floats_.encode(numbers, from.element, *plan.schema.format);
  if (!plan.one_per_lane) {
    if (plan.schema.packing == CodePacking::BigNibbles) {
      codes = loom::pick_lanes(b, codes, count, [](unsigned i) { return i ^ 1; });
    }
    return pack_fields(b, codes, width, to);
  }
  const unsigned carrier = codes->getType()->getScalarSizeInBits();
  if (width < carrier) codes = b.CreateAnd(codes, (uint64_t{1} << width) - 1);
  llvm::Type* const integers =
      llvm::FixedVectorType::get(b.getIntNTy(scalar_bits(type.element)), count);
  return b.CreateBitCast(b.CreateZExtOrTrunc(codes, integers), to);
}

llvm::Value* BodyLowering::emit_code(OpId op) {
  const auto plan = plan_code(module_, op);
  LOOM_CHECK(plan.has_value(), "a code that the plan refuses");
  if (module_.op(op).kind == VectorEncode) return encode_operand(op, *plan);
  return plan->family.empty() ? decode_operand(op, *plan) : decode_records(op, plan->family);
}

// Open is only whether strides that are values are those of the layout that is named.
llvm::Value* BodyLowering::emit_isa(OpId op) {
  if (const auto known = decided_isa(module_, op)) return builder_.getInt1(*known);
  const OpId layout = module_.defining_op(module_.operand(op, 0));
  const AttrId spec = module_.attr_ids(op)[attr_slot(EncodingIsa, "spec")];
  const auto& named = module_.attrs[encoding_argument(module_, spec, "strides")].ints;
  const auto& fixed = module_.attr(layout, attr_slot(EncodingLayoutStrided, "static_strides")).ints;
  const auto strides = module_.operands(layout);
  unsigned next = 0;
  llvm::Value* same = builder_.getTrue();
  for (unsigned axis = 0; axis < fixed.size(); ++axis) {
    llvm::Value* const stride = place(strides, fixed, axis, next);
    same = builder_.CreateAnd(same, builder_.CreateICmpEQ(stride, index_constant(named[axis])));
  }
  return same;
}

}  // namespace loom
