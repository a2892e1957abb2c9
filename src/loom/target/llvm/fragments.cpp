// Matrix fragments: all elements lie in one vector, block by block and row by row.
#include <llvm/IR/IRBuilder.h>

#include "loom/dialect/op_info.h"
#include "loom/target/llvm/body.h"
#include "loom/target/llvm/lanes.h"
#include "loom/target/llvm/named_access.h"
#include "loom/target/llvm/products.h"

namespace loom {

using enum OpKind;

// Where each row of a fragment lies: the matrix is in the trailing axes of the view, its blocks are
// along the axis before them.
std::vector<llvm::Value*> BodyLowering::fragment_rows(OpId op, ValueId view, llvm::Value* origin) {
  const FragmentExtents& extents = plan_.fragments.at(op.index());
  const Type& type = module_.types[module_.type_of(view)];
  llvm::Type* const element = llvm_memory_type(builder_.getContext(), type.element);
  std::vector<llvm::Value*> rows;
  rows.reserve(extents.blocks * extents.rows);
  for (uint64_t block = 0; block < extents.blocks; ++block) {
    for (uint64_t row = 0; row < extents.rows; ++row) {
      llvm::Value* const at = index_constant(static_cast<int64_t>(row));
      llvm::Value* offset = builder_.CreateMul(at, stride(view, type.rank() - 2));
      if (block != 0) {
        llvm::Value* const number = index_constant(static_cast<int64_t>(block));
        offset =
            builder_.CreateAdd(offset, builder_.CreateMul(number, stride(view, type.rank() - 3)));
      }
      rows.push_back(builder_.CreateInBoundsGEP(element, origin, offset));
    }
  }
  return rows;
}

void BodyLowering::emit_fragment_access(OpId op) {
  auto& b = builder_;
  const NamedAccess at(module_, op);
  const bool is_store = at.stored.valid();
  const ValueId moved = is_store ? at.stored : module_.result(op);
  const ScalarKind lanes_kind = module_.types[module_.type_of(moved)].element;
  const ScalarKind memory_kind = module_.types[module_.type_of(at.view)].element;
  const auto width = static_cast<unsigned>(plan_.fragments.at(op.index()).columns);
  llvm::Type* const row_type =
      llvm::FixedVectorType::get(llvm_memory_type(b.getContext(), memory_kind), width);
  llvm::Value* const stored =
      is_store ? to_memory(b, floats_.to_format(value(moved), lanes_kind, memory_kind), memory_kind)
               : nullptr;
  std::vector<llvm::Value*> loaded;
  unsigned first = 0;
  const auto rows = fragment_rows(op, at.view, access_address(at.view, at.indices, at.fixed));
  for (llvm::Value* const row : rows) {
    if (is_store) {
      store_row(take_lanes(b, stored, first, width), row, at.view, false);
    } else {
      loaded.push_back(load_row(row, row_type, at.view, false));
    }
    first += width;
  }
  if (is_store) return;
  llvm::Value* const lanes = from_memory(b, join(loaded), memory_kind);
  bind(moved, floats_.to_format(lanes, memory_kind, lanes_kind));
}

llvm::Value* BodyLowering::emit_product(OpId op) {
  const auto factor = [&](unsigned operand) {
    const ValueId id = module_.operand(op, operand);
    return Products::Factor{value(id), module_.types[module_.type_of(id)].element};
  };
  return Products(builder_, floats_, aids_.dots)
      .multiply(plan_.products.at(op.index()), factor(0), factor(1), factor(2),
                flags_of(module_, op, attr_slot(VectorMma, "flags")));
}

}  // namespace loom
