// Computations on vectors. A lanewise operation is the scalar one on LLVM vectors.
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Intrinsics.h>

#include <algorithm>

#include "loom/base/check.h"
#include "loom/dialect/eval_vector.h"
#include "loom/dialect/op_info.h"
#include "loom/target/llvm/bit_fields.h"
#include "loom/target/llvm/body.h"
#include "loom/target/llvm/integer_ops.h"
#include "loom/target/llvm/lanes.h"

namespace loom {

using enum OpKind;

bool BodyLowering::is_empty_vector(ValueId id) const {
  return static_lanes(module_.types[module_.type_of(id)]) == 0u;
}

// Whether the operation computes and moves nothing: all results, or what it stores, have no lanes.
bool BodyLowering::has_no_lanes(OpId op) const {
  if (module_.op(op).result_count == 0) return is_empty_vector(module_.operand(op, 0));
  const std::vector<ValueId> results = results_of(op);
  return std::ranges::all_of(results, [&](ValueId result) { return is_empty_vector(result); });
}

void BodyLowering::emit_vector_op(OpId op) {
  const OpKind kind = module_.op(op).kind;
  if (has_no_lanes(op)) {
    for (const ValueId result : results_of(op)) {
      bind(result, llvm::Constant::getNullValue(llvm_value_type(
                       builder_.getContext(), module_.types[module_.type_of(result)])));
    }
    return;
  }
  if (const auto scalar = lanewise_scalar_op(kind)) return emit_computation(op, *scalar);
  if (moves_lanes(op)) return emit_lane_moves(op);
  switch (kind) {
    case VectorAtomicReduce:
    case VectorAtomicRmw:
    case VectorAtomicReduceMask:
    case VectorAtomicRmwMask:
    case VectorAtomicCmpXchg:
      return emit_vector_atomic(op);
    case VectorFragmentLoad:
    case VectorFragmentStore:
      return emit_fragment_access(op);
    case VectorFragment:
    case VectorFragmentRepack:
      return bind(module_.result(op), value(module_.operand(op, 0)));
    default:
      break;
  }
  const Effect effect = op_info(kind).effect;
  if (effect == Effect::Read || effect == Effect::Write) return emit_vector_memory_op(op);
  const ValueId result = module_.result(op);
  const Type& type = module_.types[module_.type_of(result)];
  llvm::Type* const to = llvm_value_type(builder_.getContext(), type);
  const auto lanes = static_cast<unsigned>(static_lanes(type).value_or(0));
  switch (kind) {
    case VectorConstant: {
      const auto exact =
          from_literal(module_.attr(op, attr_slot(VectorConstant, "value")), type.element);
      LOOM_CHECK(exact.has_value(), "a literal that its type does not hold");
      return bind(result, splat(llvm_constant(builder_.getContext(), *exact), lanes));
    }
    case VectorPoison:
      return bind(result, llvm::Constant::getNullValue(to));
    case VectorSplat:
      return bind(result, splat(value(module_.operand(op, 0)), lanes));
    case VectorIota:
      return bind(result,
                  count_up(value(module_.operand(op, 0)), value(module_.operand(op, 1)), lanes));
    case VectorMaskRange:
      return bind(result,
                  emit_mask_range(value(module_.operand(op, 0)), value(module_.operand(op, 1)),
                                  value(module_.operand(op, 2)), lanes));
    case VectorFromElements: {
      llvm::Value* vector = llvm::PoisonValue::get(to);
      for (unsigned lane = 0; lane < lanes; ++lane) {
        vector = builder_.CreateInsertElement(vector, value(module_.operand(op, lane)), lane);
      }
      return bind(result, vector);
    }
    case VectorSelect:
      return bind(result, builder_.CreateSelect(value(module_.operand(op, 0)),
                                                value(module_.operand(op, 1)),
                                                value(module_.operand(op, 2))));
    case VectorReduce:
      return bind(result, emit_reduce(op));
    case VectorReduceAxes:
      return bind(result, emit_reduce_axes(op));
    case VectorDotF:
      return bind(result, emit_dot(op));
    case VectorDot2F:
    case VectorDot4I:
    case VectorDot8I4:
    case VectorDot4F8:
      return bind(result, emit_group_dot(op));
    case VectorExtract:
      return bind(result, emit_dynamic_extract(op));
    case VectorInsert:
      return bind(result, emit_dynamic_insert(op));
    case VectorSlice:
      return bind(result, emit_dynamic_slice(op));
    case VectorTableLookup:
      return bind(result, emit_table_lookup(op));
    case VectorMma:
      return bind(result, emit_product(op));
    case VectorDecode:
    case VectorEncode:
      return bind(result, emit_code(op));
    default:
      return bind(result, emit_bits(op));
  }
}

llvm::Value* BodyLowering::splat(llvm::Value* scalar, unsigned lanes) {
  return builder_.CreateVectorSplat(lanes, scalar);
}

// base + lane * step
llvm::Value* BodyLowering::count_up(llvm::Value* base, llvm::Value* step, unsigned lanes) {
  auto* const element = llvm::cast<llvm::IntegerType>(base->getType());
  std::vector<llvm::Constant*> numbers;
  numbers.reserve(lanes);
  for (unsigned lane = 0; lane < lanes; ++lane) {
    numbers.push_back(
        llvm::ConstantInt::get(element, llvm::APInt(64, lane).zextOrTrunc(element->getBitWidth())));
  }
  llvm::Value* const scaled =
      builder_.CreateMul(llvm::ConstantVector::get(numbers), splat(step, lanes));
  return builder_.CreateAdd(scaled, splat(base, lanes));
}

// Lane i is lo + i * step < hi, of numbers that do not wrap.
llvm::Value* BodyLowering::emit_mask_range(llvm::Value* lo, llvm::Value* hi, llvm::Value* step,
                                           unsigned lanes) {
  auto& b = builder_;
  const unsigned bits = lo->getType()->getIntegerBitWidth();
  const auto* const known = llvm::dyn_cast<llvm::ConstantInt>(step);
  const int64_t most = bits < 32 ? llvm::APInt::getSignedMaxValue(bits).getSExtValue() : INT32_MAX;
  if (known != nullptr && !known->isNegative() && known->getSExtValue() < most / lanes) {
    // What is left of the range has no sign. Where compares are no wider than 32 bits at their
    // best, no more of it counts than all lanes need.
    llvm::Value* const above = b.CreateBinaryIntrinsic(llvm::Intrinsic::smax, hi, lo);
    llvm::Value* left = b.CreateSub(above, lo);
    llvm::Type* compared = lo->getType();
    if (bits > 32 && !aids_.dots.wide) {
      const uint64_t all = known->getZExtValue() * lanes;
      compared = b.getInt32Ty();
      left = b.CreateTrunc(b.CreateBinaryIntrinsic(llvm::Intrinsic::umin, left,
                                                   llvm::ConstantInt::get(lo->getType(), all)),
                           compared);
    }
    llvm::Value* const places =
        count_up(llvm::ConstantInt::get(compared, 0),
                 llvm::ConstantInt::get(compared, known->getZExtValue()), lanes);
    return b.CreateICmpULT(places, splat(left, lanes));
  }
  llvm::Type* const wide = b.getIntNTy(bits > 32 ? 128 : 64);
  llvm::Value* const places = count_up(b.CreateSExt(lo, wide), b.CreateSExt(step, wide), lanes);
  return b.CreateICmpSLT(places, splat(b.CreateSExt(hi, wide), lanes));
}

// --- reductions ---------------------------------------------------------------------------------

llvm::Value* BodyLowering::combine(CombiningKind kind, uint64_t flags, ScalarKind element,
                                   llvm::Value* a, llvm::Value* b) {
  const OpKind op = combining_op(kind);
  const EvalAttrs attrs{.flags = is_float(element) ? flags : 0};
  llvm::Value* const operands[] = {a, b};
  return is_float(element) ? floats_.emit(op, attrs, operands, element, element)
                           : emit_integer_op(builder_, op, attrs, operands, element, element);
}

// Combines all lanes: in halves where the order does not show, else in lane order.
llvm::Value* BodyLowering::fold_lanes(CombiningKind kind, uint64_t flags, ScalarKind element,
                                      llvm::Value* vector, llvm::Value* initial) {
  const bool ordered =
      (kind == CombiningKind::AddF || kind == CombiningKind::MulF) && (flags & kReassoc) == 0;
  llvm::Value* folded = initial;
  while (!ordered && lanes_of(vector) > 1) {
    const unsigned lanes = lanes_of(vector);
    if (lanes % 2 != 0) {
      folded =
          combine(kind, flags, element, folded, builder_.CreateExtractElement(vector, lanes - 1));
    }
    std::vector<uint64_t> low(lanes / 2);
    std::vector<uint64_t> high(lanes / 2);
    for (unsigned i = 0; i < lanes / 2; ++i) {
      low[i] = i;
      high[i] = lanes / 2 + i;
    }
    vector = combine(kind, flags, element, pick_lanes(vector, low), pick_lanes(vector, high));
  }
  for (unsigned lane = 0; lane < lanes_of(vector); ++lane) {
    folded = combine(kind, flags, element, folded, builder_.CreateExtractElement(vector, lane));
  }
  return folded;
}

llvm::Value* BodyLowering::emit_reduce(OpId op) {
  if (is_empty_vector(module_.operand(op, 0))) return value(module_.operand(op, 1));
  const auto kind =
      static_cast<CombiningKind>(module_.attr(op, attr_slot(VectorReduce, "kind")).bits);
  const ScalarKind element = module_.types[module_.type_of(module_.operand(op, 0))].element;
  return fold_lanes(kind, eval_attrs(module_, op).flags, element, value(module_.operand(op, 0)),
                    value(module_.operand(op, 1)));
}

// Folds one slice of the reduced axes after the other into the result, in lane order.
llvm::Value* BodyLowering::emit_reduce_axes(OpId op) {
  if (is_empty_vector(module_.operand(op, 0))) return value(module_.operand(op, 1));
  const auto kind =
      static_cast<CombiningKind>(module_.attr(op, attr_slot(VectorReduceAxes, "kind")).bits);
  const auto axes = module_.attr(op, attr_slot(VectorReduceAxes, "axes")).ints;
  const uint64_t flags = eval_attrs(module_, op).flags;
  const Type& type = module_.types[module_.type_of(module_.operand(op, 0))];
  llvm::Value* const vector = value(module_.operand(op, 0));
  llvm::Value* folded = value(module_.operand(op, 1));
  if (!folded->getType()->isVectorTy()) {
    return fold_lanes(kind, flags, type.element, vector, folded);
  }
  // How far a step along each axis moves among the kept and among the folded lanes.
  std::vector<uint64_t> kept(type.rank(), 0);
  std::vector<uint64_t> gone(type.rank(), 0);
  uint64_t kept_lanes = 1;
  uint64_t gone_lanes = 1;
  for (size_t axis = type.rank(); axis-- > 0;) {
    const bool is_gone = std::ranges::find(axes, static_cast<int64_t>(axis)) != axes.end();
    uint64_t& lanes = is_gone ? gone_lanes : kept_lanes;
    (is_gone ? gone : kept)[axis] = lanes;
    lanes *= static_cast<uint64_t>(type.dims[axis].extent());
  }
  std::vector<std::vector<uint64_t>> slices(gone_lanes, std::vector<uint64_t>(kept_lanes));
  for (uint64_t lane = 0; lane < kept_lanes * gone_lanes; ++lane) {
    uint64_t rest = lane;
    uint64_t slice = 0;
    uint64_t place = 0;
    for (size_t axis = type.rank(); axis-- > 0;) {
      const auto extent = static_cast<uint64_t>(type.dims[axis].extent());
      slice += rest % extent * gone[axis];
      place += rest % extent * kept[axis];
      rest /= extent;
    }
    slices[slice][place] = lane;
  }
  for (const auto& slice : slices) {
    folded = combine(kind, flags, type.element, folded, pick_lanes(vector, slice));
  }
  return folded;
}

llvm::Value* BodyLowering::emit_dot(OpId op) {
  if (is_empty_vector(module_.operand(op, 0))) return value(module_.operand(op, 2));
  const EvalAttrs attrs = eval_attrs(module_, op);
  const ScalarKind element = module_.types[module_.type_of(module_.operand(op, 0))].element;
  llvm::Value* const a = value(module_.operand(op, 0));
  llvm::Value* const b = value(module_.operand(op, 1));
  llvm::Value* sum = value(module_.operand(op, 2));
  if ((attrs.flags & kReassoc) != 0) {
    llvm::Value* const factors[] = {a, b};
    llvm::Value* const products = floats_.emit(ScalarMulF, attrs, factors, element, element);
    return fold_lanes(CombiningKind::AddF, attrs.flags, element, products, sum);
  }
  for (unsigned lane = 0; lane < lanes_of(a); ++lane) {
    llvm::Value* const terms[] = {builder_.CreateExtractElement(a, lane),
                                  builder_.CreateExtractElement(b, lane), sum};
    sum = floats_.emit(ScalarFmaF, attrs, terms, element, element);
  }
  return sum;
}

// A dot product by one instruction, null where the target or the operation has none.
llvm::Value* BodyLowering::emit_native_dot(OpId op) {
  const OpKind kind = module_.op(op).kind;
  llvm::Value* const a = value(module_.operand(op, 0));
  llvm::Value* const b = value(module_.operand(op, 1));
  llvm::Value* const sums = value(module_.operand(op, 2));
  if (lanes_of(sums) % 4 != 0) return nullptr;
  if (kind == VectorDot2F) {
    constexpr uint64_t kInexact = kReassoc | kAfn;
    const ScalarKind element = module_.types[module_.type_of(module_.operand(op, 0))].element;
    const bool fits = aids_.dots.pairs_bf16 && element == ScalarKind::BF16 &&
                      (eval_attrs(module_, op).flags & kInexact) == kInexact;
    return fits ? dot_pairs_bf16(builder_, aids_.dots, a, b, sums) : nullptr;
  }
  if (kind != VectorDot4I || !aids_.dots.quads) return nullptr;
  const auto signs =
      static_cast<FactorSigns>(module_.attr(op, attr_slot(VectorDot4I, "kind")).bits);
  return dot_quads(builder_, aids_.dots, signs == FactorSigns::SS || signs == FactorSigns::SU,
                   signs == FactorSigns::SS || signs == FactorSigns::US, a, b, sums);
}

// Each lane of the third operand plus the products of a few neighbours of the other two.
llvm::Value* BodyLowering::emit_group_dot(OpId op) {
  if (llvm::Value* const native = emit_native_dot(op)) return native;
  const OpKind kind = module_.op(op).kind;
  auto& b = builder_;
  llvm::Value* const a_lanes = value(module_.operand(op, 0));
  llvm::Value* const b_lanes = value(module_.operand(op, 1));
  llvm::Value* sum = value(module_.operand(op, 2));
  const unsigned lanes = lanes_of(sum);
  const unsigned group = kind == VectorDot2F ? 2 : kind == VectorDot8I4 ? 8 : 4;
  // The k-th factor of every group.
  const auto every = [&](llvm::Value* from, unsigned k) {
    std::vector<uint64_t> picked(lanes);
    for (unsigned i = 0; i < lanes; ++i) picked[i] = uint64_t{i} * group + k;
    return pick_lanes(from, picked);
  };
  if (kind == VectorDot2F || kind == VectorDot4F8) {
    ScalarKind formats[2];
    formats[0] = formats[1] = module_.types[module_.type_of(module_.operand(op, 0))].element;
    llvm::Value* from[2] = {a_lanes, b_lanes};
    if (kind == VectorDot4F8) {
      const auto mix =
          static_cast<DotF8Kind>(module_.attr(op, attr_slot(VectorDot4F8, "kind")).bits);
      const bool bf8_a = mix == DotF8Kind::Bf8Fp8 || mix == DotF8Kind::Bf8Bf8;
      const bool bf8_b = mix == DotF8Kind::Fp8Bf8 || mix == DotF8Kind::Bf8Bf8;
      formats[0] = bf8_a ? ScalarKind::F8E5M2 : ScalarKind::F8E4M3;
      formats[1] = bf8_b ? ScalarKind::F8E5M2 : ScalarKind::F8E4M3;
      llvm::Type* const bytes = llvm::FixedVectorType::get(b.getInt8Ty(), lanes * 4);
      for (llvm::Value*& part : from) part = b.CreateBitCast(part, bytes);
    }
    for (unsigned k = 0; k < group; ++k) {
      llvm::Value* terms[3];
      for (unsigned side = 0; side < 2; ++side) {
        llvm::Value* const narrow[] = {every(from[side], k)};
        terms[side] = floats_.emit(ScalarExtF, {}, narrow, formats[side], ScalarKind::F32);
      }
      terms[2] = sum;
      sum = floats_.emit(ScalarFmaF, {}, terms, ScalarKind::F32, ScalarKind::F32);
    }
    return sum;
  }
  const auto signs =
      static_cast<FactorSigns>(module_.attr(op, attr_slot(VectorDot4I, "kind")).bits);
  const bool is_signed[2] = {signs == FactorSigns::SS || signs == FactorSigns::SU,
                             signs == FactorSigns::SS || signs == FactorSigns::US};
  llvm::Value* from[2] = {a_lanes, b_lanes};
  if (kind == VectorDot8I4) {
    llvm::Type* const nibbles = llvm::FixedVectorType::get(b.getIntNTy(4), lanes * 8);
    for (llvm::Value*& part : from) part = b.CreateBitCast(part, nibbles);
  }
  for (unsigned k = 0; k < group; ++k) {
    llvm::Value* factors[2];
    for (unsigned side = 0; side < 2; ++side) {
      llvm::Value* const narrow = every(from[side], k);
      factors[side] = is_signed[side] ? b.CreateSExt(narrow, sum->getType())
                                      : b.CreateZExt(narrow, sum->getType());
    }
    sum = b.CreateAdd(sum, b.CreateMul(factors[0], factors[1]));
  }
  return sum;
}

// --- bits ---------------------------------------------------------------------------------------

llvm::Value* BodyLowering::emit_bits(OpId op) {
  auto& b = builder_;
  const OpKind kind = module_.op(op).kind;
  llvm::Value* const from = value(module_.operand(op, 0));
  const Type& type = module_.types[module_.type_of(module_.result(op))];
  llvm::Type* const to = llvm_value_type(b.getContext(), type);
  const auto width = [&] {
    static_assert(attr_slot(VectorBitpack, "width") == attr_slot(VectorBitunpackU, "width") &&
                  attr_slot(VectorBitpack, "width") == attr_slot(VectorBitunpackS, "width"));
    return static_cast<unsigned>(module_.attr(op, attr_slot(VectorBitpack, "width")).value());
  };
  switch (kind) {
    case VectorBitcast:
      return b.CreateBitCast(from, to);
    case VectorBitfieldExtractU:
    case VectorBitfieldExtractS: {
      const OpKind scalar =
          kind == VectorBitfieldExtractS ? ScalarBitfieldExtractS : ScalarBitfieldExtractU;
      const ScalarKind element = module_.types[module_.type_of(module_.operand(op, 0))].element;
      return emit_integer_op(b, scalar, eval_attrs(module_, op), {&from, 1}, element, type.element);
    }
    case VectorBitpack:
      return pack_fields(b, from, width(), to);
    case VectorBitunpackU:
    case VectorBitunpackS: {
      const auto lanes = static_cast<unsigned>(static_lanes(type).value_or(0));
      return unpack_fields(b, from, width(), lanes, kind == VectorBitunpackS, to->getScalarType());
    }
    default:
      break;
  }
  LOOM_CHECK(kind == VectorBitfieldInsert, "not a vector operation that is lowered");
  llvm::Value* const into = value(module_.operand(op, 1));
  const auto offset =
      static_cast<unsigned>(module_.attr(op, attr_slot(VectorBitfieldInsert, "offset")).value());
  const auto bits =
      static_cast<unsigned>(module_.attr(op, attr_slot(VectorBitfieldInsert, "width")).value());
  const unsigned all = to->getScalarSizeInBits();
  llvm::Constant* const mask =
      llvm::ConstantInt::get(to, llvm::APInt::getBitsSet(all, offset, offset + bits));
  llvm::Value* const field = b.CreateShl(b.CreateZExtOrTrunc(from, to), offset);
  return b.CreateOr(b.CreateAnd(into, b.CreateNot(mask)), b.CreateAnd(field, mask));
}

}  // namespace loom
