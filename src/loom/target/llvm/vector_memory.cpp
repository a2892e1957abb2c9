// Loads and stores of vectors. Lanes that a mask leaves out do not touch memory.
#include <llvm/IR/IRBuilder.h>

#include "loom/base/check.h"
#include "loom/dialect/encoding_info.h"
#include "loom/dialect/op_info.h"
#include "loom/target/llvm/body.h"
#include "loom/target/llvm/encoded_plan.h"
#include "loom/target/llvm/lanes.h"
#include "loom/target/llvm/named_access.h"

namespace loom {

using enum OpKind;

namespace {

llvm::Align element_alignment(const Type& view) { return llvm::Align(scalar_bytes(view.element)); }

}  // namespace

// The vector's rows, each a run of lanes that lie one behind the other: where each one begins.
std::vector<llvm::Value*> BodyLowering::row_addresses(llvm::Value* first, ValueId view,
                                                      const Type& vector) {
  const Type& type = module_.types[module_.type_of(view)];
  llvm::Type* const element = llvm_memory_type(builder_.getContext(), type.element);
  std::vector<llvm::Value*> rows = {first};
  for (size_t axis = 0; axis + 1 < vector.rank(); ++axis) {
    llvm::Value* const step = stride(view, type.rank() - vector.rank() + axis);
    std::vector<llvm::Value*> finer;
    for (llvm::Value* const row : rows) {
      for (int64_t i = 0; i < vector.dims[axis].extent(); ++i) {
        llvm::Value* const offset = builder_.CreateMul(step, index_constant(i));
        finer.push_back(i == 0 ? row : builder_.CreateInBoundsGEP(element, row, offset));
      }
    }
    rows = std::move(finer);
  }
  return rows;
}

// Where the lanes of one row lie, `address` being that of the first.
llvm::Value* BodyLowering::lane_addresses(llvm::Value* address, ValueId view, unsigned lanes) {
  const Type& type = module_.types[module_.type_of(view)];
  llvm::Value* const offsets = count_up(index_constant(0), stride(view, type.rank() - 1), lanes);
  return builder_.CreateGEP(llvm_memory_type(builder_.getContext(), type.element), address,
                            offsets);
}

llvm::Instruction* BodyLowering::load_row(llvm::Value* address, llvm::Type* row_type, ValueId view,
                                          bool is_volatile) {
  auto& b = builder_;
  const llvm::Align align = element_alignment(module_.types[module_.type_of(view)]);
  llvm::Instruction* loaded = nullptr;
  if (!has_stride(view)) {
    loaded = b.CreateAlignedLoad(row_type, address, align, is_volatile);
  } else {
    const unsigned lanes = llvm::cast<llvm::FixedVectorType>(row_type)->getNumElements();
    loaded = b.CreateMaskedGather(row_type, lane_addresses(address, view, lanes), align);
  }
  describe_access(loaded, view);
  return loaded;
}

llvm::Instruction* BodyLowering::store_row(llvm::Value* row, llvm::Value* address, ValueId view,
                                           bool is_volatile) {
  auto& b = builder_;
  const llvm::Align align = element_alignment(module_.types[module_.type_of(view)]);
  llvm::Instruction* const stored =
      has_stride(view)
          ? b.CreateMaskedScatter(row, lane_addresses(address, view, lanes_of(row)), align)
          : static_cast<llvm::Instruction*>(b.CreateAlignedStore(row, address, align, is_volatile));
  describe_access(stored, view);
  return stored;
}

void BodyLowering::emit_vector_memory_op(OpId op) {
  auto& b = builder_;
  const NamedAccess at(module_, op);
  const bool is_store = at.stored.valid();
  const ValueId moved = is_store ? at.stored : module_.result(op);
  const Type& vector = module_.types[module_.type_of(moved)];
  const Type& view = module_.types[module_.type_of(at.view)];
  llvm::Type* const element = llvm_memory_type(b.getContext(), view.element);
  const llvm::Align align = element_alignment(view);
  llvm::Value* const stored = is_store ? to_memory(b, value(at.stored), vector.element) : nullptr;
  llvm::Value* const passthrough =
      at.passthrough.valid() ? to_memory(b, value(at.passthrough), vector.element) : nullptr;
  llvm::Value* const mask = at.mask.valid() ? value(at.mask) : nullptr;
  const auto all_lanes = static_cast<unsigned>(static_lanes(vector).value_or(0));

  if (at.offsets.valid()) {
    llvm::Value* offsets = value(at.offsets);
    offsets = b.CreateSExtOrTrunc(offsets, llvm::FixedVectorType::get(b.getInt64Ty(), all_lanes));
    llvm::Value* const origin =
        b.CreateGEP(element, value(at.view), linear_index(at.view, at.indices, at.fixed));
    if (has_stride(at.view)) {
      offsets = b.CreateMul(offsets, splat(stride(at.view, view.rank() - 1), all_lanes));
    }
    llvm::Value* const places = b.CreateGEP(element, origin, offsets);
    llvm::Instruction* const moving =
        is_store ? b.CreateMaskedScatter(stored, places, align, mask)
                 : b.CreateMaskedGather(llvm::FixedVectorType::get(element, all_lanes), places,
                                        align, mask, passthrough);
    describe_access(moving, at.view);
    if (!is_store) bind(moved, from_memory(b, moving, vector.element));
    return;
  }

  // A mask may leave out what the origin points at.
  llvm::Value* const origin =
      mask != nullptr
          ? b.CreateGEP(element, value(at.view), linear_index(at.view, at.indices, at.fixed))
          : access_address(at.view, at.indices, at.fixed);
  const std::vector<llvm::Value*> rows = row_addresses(origin, at.view, vector);
  const auto width = all_lanes / static_cast<unsigned>(rows.size());
  llvm::Type* const row_type = llvm::FixedVectorType::get(element, width);
  std::vector<llvm::Value*> loaded;
  for (size_t row = 0; row < rows.size(); ++row) {
    std::vector<uint64_t> lanes(width);
    for (unsigned i = 0; i < width; ++i) lanes[i] = row * width + i;
    const auto part = [&](llvm::Value* whole) {
      return rows.size() == 1 || whole == nullptr ? whole : pick_lanes(whole, lanes);
    };
    if (mask == nullptr) {
      if (is_store) {
        stream(store_row(part(stored), rows[row], at.view, at.is_volatile), op);
      } else {
        llvm::Instruction* const moving = load_row(rows[row], row_type, at.view, at.is_volatile);
        stream(moving, op);
        loaded.push_back(moving);
      }
      continue;
    }
    llvm::Instruction* moving = nullptr;
    if (has_stride(at.view)) {
      llvm::Value* const places = lane_addresses(rows[row], at.view, width);
      moving = is_store
                   ? b.CreateMaskedScatter(part(stored), places, align, part(mask))
                   : b.CreateMaskedGather(row_type, places, align, part(mask), part(passthrough));
    } else {
      moving = is_store
                   ? b.CreateMaskedStore(part(stored), rows[row], align, part(mask))
                   : b.CreateMaskedLoad(row_type, rows[row], align, part(mask), part(passthrough));
    }
    if (!is_store) loaded.push_back(moving);
    describe_access(moving, at.view);
    stream(moving, op);
  }
  if (!is_store) bind(moved, from_memory(b, join(loaded), vector.element));
  if (plan_.record_loads.contains(op.index()) && !has_stride(at.view)) {
    load_records(op, rows, at.view);
  }
}

// Loads the fields of records each by itself, as no shuffle of odd vectors gives them back.
void BodyLowering::load_records(OpId load, std::span<llvm::Value* const> rows, ValueId view) {
  const std::string_view family = plan_.record_loads.at(load.index());
  const StorageRecord record = find_encoding_family(family)->record;
  const Type& type = module_.types[module_.type_of(module_.result(load))];
  const auto bytes = static_cast<unsigned>(*static_lanes(type) * scalar_bits(type.element) / 8);
  const auto row_bytes = bytes / static_cast<unsigned>(rows.size());
  auto& pieces = record_pieces_[module_.result(load).index()];
  pieces.clear();
  if (row_bytes % record.bytes != 0) return;
  for (unsigned begin = 0; begin < bytes; begin += record.bytes) {
    for (const RecordField& field : record_fields(family)) {
      const unsigned first = begin + field.offset;
      llvm::Value* const address = builder_.CreateInBoundsGEP(
          builder_.getInt8Ty(), rows[first / row_bytes], builder_.getInt64(first % row_bytes));
      llvm::Instruction* const piece = builder_.CreateAlignedLoad(
          llvm::FixedVectorType::get(builder_.getInt8Ty(), field.bytes), address,
          llvm::commonAlignment(element_alignment(module_.types[module_.type_of(view)]),
                                first % row_bytes));
      describe_access(piece, view);
      pieces[first] = piece;
    }
  }
}

}  // namespace loom
