// Operations that move lanes. Which lane goes where is what evaluate_vector() says of vectors whose
// lanes hold their own numbers.
#include <llvm/IR/IRBuilder.h>

#include <algorithm>
#include <numeric>

#include "loom/base/check.h"
#include "loom/dialect/eval_vector.h"
#include "loom/dialect/op_info.h"
#include "loom/target/llvm/body.h"
#include "loom/target/llvm/lanes.h"

namespace loom {

using enum OpKind;

namespace {

std::vector<int64_t> extents_of(const Type& type) {
  std::vector<int64_t> extents;
  extents.reserve(type.rank());
  for (const Dim dim : type.dims) extents.push_back(dim.extent());
  return extents;
}

// The slot of the index list of an operation that may have indices known at run time alone.
std::optional<unsigned> static_index_slot(OpKind kind) {
  switch (kind) {
    case VectorExtract:
      return attr_slot(VectorExtract, "static_index");
    case VectorInsert:
      return attr_slot(VectorInsert, "static_index");
    case VectorSlice:
      return attr_slot(VectorSlice, "static_index");
    default:
      return std::nullopt;
  }
}

}  // namespace

// Whether the operation is a move of lanes that are all known here.
bool BodyLowering::moves_lanes(OpId op) const {
  const OpKind kind = module_.op(op).kind;
  switch (kind) {
    case VectorBroadcast:
    case VectorConcat:
    case VectorTranspose:
    case VectorShuffle:
    case VectorInterleave:
    case VectorDeinterleave:
      return true;
    default:
      break;
  }
  const auto slot = static_index_slot(kind);
  return slot && std::ranges::find(module_.attr(op, *slot).ints, kDynamicIndex) ==
                     module_.attr(op, *slot).ints.end();
}

llvm::Value* BodyLowering::join(std::span<llvm::Value* const> parts) {
  return join_lanes(builder_, parts);
}

llvm::Value* BodyLowering::pick_lanes(llvm::Value* from, std::span<const uint64_t> lanes) {
  return loom::pick_lanes(builder_, from, lanes);
}

void BodyLowering::emit_lane_moves(OpId op) {
  std::vector<LaneValues> numbered;
  Components parts;
  uint64_t next = 0;
  for (const ValueId operand : module_.operands(op)) {
    const Type& type = module_.types[module_.type_of(operand)];
    LaneValues lanes{.element = ScalarKind::Index, .shape = extents_of(type)};
    lanes.lanes.resize(lane_count(lanes.shape));
    std::iota(lanes.lanes.begin(), lanes.lanes.end(), next);
    next += lanes.lanes.size();
    numbered.push_back(std::move(lanes));
    if (!is_empty_vector(operand)) parts.push_back(value(operand));
  }
  std::vector<LaneValues> moved(module_.op(op).result_count);
  for (unsigned i = 0; i < moved.size(); ++i) {
    moved[i].shape = extents_of(module_.types[module_.type_of(module_.result(op, i))]);
  }
  const EvalStatus status = evaluate_vector(module_, op, numbered, moved);
  LOOM_CHECK(status == EvalStatus::Ok, "lanes of a verified operation are where they are");
  llvm::Value* const joined = join(parts);
  for (unsigned i = 0; i < moved.size(); ++i) {
    const ValueId result = module_.result(op, i);
    const bool is_scalar = module_.types[module_.type_of(result)].is_scalar();
    bind(result, is_scalar ? builder_.CreateExtractElement(joined, moved[i].lanes[0])
                           : pick_lanes(joined, moved[i].lanes));
  }
}

// --- places that are known at run time ----------------------------------------------------------

// The first lane behind leading indices.
llvm::Value* BodyLowering::dynamic_lane(OpId op, unsigned vector_operand,
                                        std::span<const int64_t> fixed) {
  const Type& type = module_.types[module_.type_of(module_.operand(op, vector_operand))];
  const auto operands = module_.operands(op).subspan(vector_operand + 1);
  llvm::Value* lane = index_constant(0);
  unsigned next_operand = 0;
  for (unsigned axis = 0; axis < type.rank(); ++axis) {
    if (axis < fixed.size()) {
      lane = builder_.CreateAdd(lane, place(operands, fixed, axis, next_operand));
    }
    if (axis + 1 < type.rank()) {
      lane = builder_.CreateMul(lane, index_constant(type.dims[axis + 1].extent()));
    }
  }
  return lane;
}

llvm::Value* BodyLowering::emit_dynamic_extract(OpId op) {
  const auto fixed = module_.attr(op, attr_slot(VectorExtract, "static_index")).ints;
  llvm::Value* const from = value(module_.operand(op, 0));
  llvm::Value* const first = dynamic_lane(op, 0, fixed);
  const Type& type = module_.types[module_.type_of(module_.result(op))];
  if (type.is_scalar()) return builder_.CreateExtractElement(from, first);
  const auto lanes = static_cast<unsigned>(static_lanes(type).value_or(0));
  llvm::Value* result = llvm::PoisonValue::get(llvm_value_type(builder_.getContext(), type));
  for (unsigned i = 0; i < lanes; ++i) {
    llvm::Value* const lane = builder_.CreateAdd(first, index_constant(i));
    result = builder_.CreateInsertElement(result, builder_.CreateExtractElement(from, lane),
                                          uint64_t{i});
  }
  return result;
}

llvm::Value* BodyLowering::emit_dynamic_insert(OpId op) {
  const auto fixed = module_.attr(op, attr_slot(VectorInsert, "static_index")).ints;
  llvm::Value* const part = value(module_.operand(op, 0));
  llvm::Value* into = value(module_.operand(op, 1));
  llvm::Value* const first = dynamic_lane(op, 1, fixed);
  if (!part->getType()->isVectorTy()) return builder_.CreateInsertElement(into, part, first);
  if (is_empty_vector(module_.operand(op, 0))) return into;
  for (unsigned i = 0; i < lanes_of(part); ++i) {
    llvm::Value* const lane = builder_.CreateAdd(first, index_constant(i));
    into =
        builder_.CreateInsertElement(into, builder_.CreateExtractElement(part, uint64_t{i}), lane);
  }
  return into;
}

llvm::Value* BodyLowering::emit_dynamic_slice(OpId op) {
  const auto fixed = module_.attr(op, attr_slot(VectorSlice, "static_index")).ints;
  const Type& source = module_.types[module_.type_of(module_.operand(op, 0))];
  const Type& type = module_.types[module_.type_of(module_.result(op))];
  llvm::Value* const from = value(module_.operand(op, 0));
  llvm::Value* const first = dynamic_lane(op, 0, fixed);
  const auto lanes = static_cast<unsigned>(static_lanes(type).value_or(0));
  llvm::Value* result = llvm::PoisonValue::get(llvm_value_type(builder_.getContext(), type));
  for (unsigned i = 0; i < lanes; ++i) {
    // Where lane i lies behind the first one.
    int64_t rest = i;
    int64_t offset = 0;
    int64_t stride = 1;
    for (size_t axis = type.rank(); axis-- > 0;) {
      offset += rest % type.dims[axis].extent() * stride;
      rest /= type.dims[axis].extent();
      stride *= source.dims[axis].extent();
    }
    llvm::Value* const lane = builder_.CreateAdd(first, index_constant(offset));
    result = builder_.CreateInsertElement(result, builder_.CreateExtractElement(from, lane),
                                          uint64_t{i});
  }
  return result;
}

llvm::Value* BodyLowering::emit_table_lookup(OpId op) {
  llvm::Value* const table = value(module_.operand(op, 0));
  llvm::Value* const places = value(module_.operand(op, 1));
  llvm::Value* result = llvm::PoisonValue::get(
      llvm_value_type(builder_.getContext(), module_.types[module_.type_of(module_.result(op))]));
  for (unsigned i = 0; i < lanes_of(places); ++i) {
    llvm::Value* const place = builder_.CreateZExtOrTrunc(
        builder_.CreateExtractElement(places, uint64_t{i}), builder_.getInt64Ty());
    result = builder_.CreateInsertElement(result, builder_.CreateExtractElement(table, place),
                                          uint64_t{i});
  }
  return result;
}

}  // namespace loom
