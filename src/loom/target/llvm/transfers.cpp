// Asynchronous copies. They may happen at any time up to the wait for them, so here they happen at
// once, and tokens and groups are nothing.
#include <llvm/IR/IRBuilder.h>

#include <numeric>

#include "loom/base/check.h"
#include "loom/dialect/op_info.h"
#include "loom/target/llvm/body.h"

namespace loom {

using enum OpKind;

namespace {

bool is_masked(OpKind kind) { return kind == KernelAsyncCopyMask || kind == KernelAsyncGatherMask; }
bool is_gather(OpKind kind) { return kind == KernelAsyncGather || kind == KernelAsyncGatherMask; }

}  // namespace

// The element that comes `flat` elements after the first in row-major order, `skipped` leading axes
// aside.
llvm::Value* BodyLowering::flat_address(ValueId view, llvm::Value* base, unsigned skipped,
                                        llvm::Value* flat) {
  const Type& type = module_.types[module_.type_of(view)];
  llvm::Value* offset = index_constant(0);
  for (size_t axis = type.rank(); axis-- > skipped;) {
    llvm::Value* const extent = index_constant(type.dims[axis].extent());
    llvm::Value* const place = axis == skipped ? flat : builder_.CreateURem(flat, extent);
    offset = builder_.CreateAdd(offset, builder_.CreateMul(place, stride(view, axis)));
    if (axis != skipped) flat = builder_.CreateUDiv(flat, extent);
  }
  return builder_.CreateGEP(llvm_memory_type(builder_.getContext(), type.element), base, offset);
}

// Runs of elements that lie one behind the other on both sides go as one.
void BodyLowering::emit_transfer(OpId op) {
  auto& b = builder_;
  const OpKind kind = module_.op(op).kind;
  const ValueId source = module_.operand(op, 0);
  const ValueId target = module_.operand(op, 1);
  const Type& from = module_.types[module_.type_of(source)];
  const Type& to = module_.types[module_.type_of(target)];
  const unsigned skipped = is_gather(kind) ? 1 : 0;
  bind(module_.result(op), llvm::ConstantPointerNull::get(b.getPtrTy()));
  int64_t count = 1;
  for (const Dim dim : from.dims) count *= dim.extent();
  if (count == 0) return;
  const auto last = [](const Type& type, unsigned without) {
    return type.rank() > without ? type.dims[type.rank() - 1].extent() : int64_t{1};
  };
  const bool apart = has_stride(source) || has_stride(target);
  const int64_t run = apart ? 1 : std::gcd(last(from, 0), last(to, skipped));

  llvm::BasicBlock* const exit = new_block();
  llvm::BasicBlock* const work = new_block();
  llvm::Value* const wanted = is_masked(kind) ? value(module_.operand(op, 2)) : b.getTrue();
  b.CreateCondBr(wanted, work, exit);
  b.SetInsertPoint(work);
  llvm::Type* const element = llvm_memory_type(b.getContext(), from.element);
  llvm::Value* base = value(target);
  if (skipped != 0) {
    llvm::Value* const lane = queries_->query(KernelSubgroupLaneId, Axis::X);
    base = b.CreateGEP(element, base, b.CreateMul(lane, stride(target, 0)));
  }
  LOOM_CHECK(count % run == 0, "a run that does not divide the elements");
  const llvm::MaybeAlign align(scalar_bytes(from.element));
  each_round(static_cast<uint64_t>(count / run), [&](llvm::Value* number) {
    llvm::Value* const flat = b.CreateMul(number, index_constant(run));
    b.CreateMemCpy(flat_address(target, base, skipped, flat), align,
                   flat_address(source, value(source), 0, flat), align,
                   static_cast<uint64_t>(run) * scalar_bytes(from.element));
  });
  b.CreateBr(exit);
  b.SetInsertPoint(exit);
}

void BodyLowering::emit_async(OpId op) {
  switch (module_.op(op).kind) {
    case KernelAsyncWait:
      return;
    case KernelAsyncGroup:
      return bind(module_.result(op), llvm::ConstantPointerNull::get(builder_.getPtrTy()));
    default:
      return emit_transfer(op);
  }
}

}  // namespace loom
