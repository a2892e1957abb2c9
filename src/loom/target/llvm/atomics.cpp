// Atomic accesses. Integers combine by the processor's own operations, floats in a loop that
// compares their bits.
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/IntrinsicsX86.h>

#include <array>

#include "loom/base/check.h"
#include "loom/dialect/eval_vector.h"
#include "loom/dialect/op_info.h"
#include "loom/target/llvm/body.h"
#include "loom/target/llvm/named_access.h"

namespace loom {

using enum OpKind;

namespace {

// Every access of these has its element on its alignment.
llvm::Align natural(ScalarKind element) { return llvm::Align(scalar_bytes(element)); }

std::optional<uint64_t> choice(const Module& module, OpId op, std::string_view name) {
  const OpInfo& info = op_info(module.op(op).kind);
  for (unsigned slot = 0; slot < info.attrs.size(); ++slot) {
    if (info.attrs[slot].name == name) return module.attr(op, slot).bits;
  }
  return std::nullopt;
}

llvm::AtomicOrdering ordering_of(const Module& module, OpId op, std::string_view name) {
  constexpr std::array kOrderings = {
      llvm::AtomicOrdering::Monotonic, llvm::AtomicOrdering::Acquire, llvm::AtomicOrdering::Release,
      llvm::AtomicOrdering::AcquireRelease, llvm::AtomicOrdering::SequentiallyConsistent};
  return kOrderings[choice(module, op, name).value()];
}

std::optional<llvm::AtomicRMWInst::BinOp> own_operation(AtomicKind kind) {
  using BinOp = llvm::AtomicRMWInst::BinOp;
  switch (kind) {
    case AtomicKind::XchgI:
    case AtomicKind::XchgF:
      return BinOp::Xchg;
    case AtomicKind::AddI:
      return BinOp::Add;
    case AtomicKind::SubI:
      return BinOp::Sub;
    case AtomicKind::AndI:
      return BinOp::And;
    case AtomicKind::OrI:
      return BinOp::Or;
    case AtomicKind::XorI:
      return BinOp::Xor;
    case AtomicKind::MinSI:
      return BinOp::Min;
    case AtomicKind::MaxSI:
      return BinOp::Max;
    case AtomicKind::MinUI:
      return BinOp::UMin;
    case AtomicKind::MaxUI:
      return BinOp::UMax;
    default:
      return std::nullopt;
  }
}

bool keeps_denormals(const Module& module, OpId op) {
  const OpInfo& info = op_info(module.op(op).kind);
  for (unsigned slot = 0; slot < info.attrs.size(); ++slot) {
    if (info.attrs[slot].name == "flags") return (flags_of(module, op, slot) & kNoFtz) != 0;
  }
  return false;
}

}  // namespace

llvm::Value* BodyLowering::stack_room(llvm::Type* type) {
  llvm::IRBuilderBase::InsertPointGuard guard(builder_);
  builder_.SetInsertPoint(entry_, entry_->begin());
  return builder_.CreateAlloca(type);
}

// Denormals count from here on, whatever the kernel does with them. Returns where the register's
// former value is.
llvm::Value* BodyLowering::keep_denormals() {
  constexpr uint64_t kFlushBits = 0x8040;
  auto& b = builder_;
  llvm::Value* const saved = stack_room(b.getInt32Ty());
  llvm::Value* const changed = stack_room(b.getInt32Ty());
  b.CreateIntrinsic(llvm::Intrinsic::x86_sse_stmxcsr, {}, {saved});
  b.CreateStore(b.CreateAnd(b.CreateLoad(b.getInt32Ty(), saved), ~kFlushBits), changed);
  b.CreateIntrinsic(llvm::Intrinsic::x86_sse_ldmxcsr, {}, {changed});
  return saved;
}

// Replaces the element by what `next` makes of it; returns what it was. All as bits.
llvm::Value* BodyLowering::replace_atomically(
    llvm::Value* address, ScalarKind element, llvm::AtomicOrdering ordering,
    const std::function<llvm::Value*(llvm::Value* old)>& next) {
  auto& b = builder_;
  llvm::Type* const bits = b.getIntNTy(scalar_bits(element));
  llvm::LoadInst* const first = b.CreateAlignedLoad(bits, address, natural(element));
  first->setAtomic(llvm::AtomicOrdering::Monotonic);
  llvm::BasicBlock* const before = b.GetInsertBlock();
  llvm::BasicBlock* const round = new_block();
  llvm::BasicBlock* const exit = new_block();
  b.CreateBr(round);
  b.SetInsertPoint(round);
  llvm::PHINode* const old = b.CreatePHI(bits, 2);
  old->addIncoming(first, before);
  llvm::Value* const wanted = next(old);
  llvm::Value* const result =
      b.CreateAtomicCmpXchg(address, old, wanted, natural(element), ordering,
                            llvm::AtomicCmpXchgInst::getStrongestFailureOrdering(ordering));
  old->addIncoming(b.CreateExtractValue(result, 0), b.GetInsertBlock());
  b.CreateCondBr(b.CreateExtractValue(result, 1), exit, round);
  b.SetInsertPoint(exit);
  return old;
}

// One element: combined with `operand`, or replaced by it where it equals `expected`. Returns its
// former bits as a value.
llvm::Value* BodyLowering::emit_atomic_update(OpId op, llvm::Value* address, ScalarKind element,
                                              llvm::Value* operand, llvm::Value* expected) {
  auto& b = builder_;
  llvm::Type* const type = llvm_type(b.getContext(), element);
  llvm::Type* const bits = b.getIntNTy(scalar_bits(element));
  if (expected != nullptr) {
    llvm::Value* const result = b.CreateAtomicCmpXchg(
        address, b.CreateBitCast(expected, bits), b.CreateBitCast(operand, bits), natural(element),
        ordering_of(module_, op, "success_ordering"), ordering_of(module_, op, "failure_ordering"));
    return b.CreateBitCast(b.CreateExtractValue(result, 0), type);
  }
  const llvm::AtomicOrdering ordering = ordering_of(module_, op, "ordering");
  const auto kind = static_cast<AtomicKind>(choice(module_, op, "kind").value());
  if (const auto own = own_operation(kind)) {
    return b.CreateBitCast(b.CreateAtomicRMW(*own, address, b.CreateBitCast(operand, bits),
                                             natural(element), ordering),
                           type);
  }
  const auto combining = combining_op(kind);
  LOOM_CHECK(combining.has_value(), "an atomic kind without an operation");
  llvm::Value* const kept = keeps_denormals(module_, op) ? keep_denormals() : nullptr;
  llvm::Value* const old = replace_atomically(address, element, ordering, [&](llvm::Value* former) {
    llvm::Value* const operands[] = {b.CreateBitCast(former, type), operand};
    return b.CreateBitCast(floats_.emit(*combining, {}, operands, element, element), bits);
  });
  // The sums in between hang on the element, so they stay in between.
  if (kept != nullptr) b.CreateIntrinsic(llvm::Intrinsic::x86_sse_ldmxcsr, {}, {kept});
  return b.CreateBitCast(old, type);
}

void BodyLowering::emit_view_atomic(OpId op) {
  auto& b = builder_;
  const NamedAccess at(module_, op);
  const ScalarKind element = module_.types[module_.type_of(at.view)].element;
  llvm::Type* const type = llvm_type(b.getContext(), element);
  llvm::Value* const address = access_address(at.view, at.indices, at.fixed);
  switch (module_.op(op).kind) {
    case ViewAtomicLoad: {
      llvm::LoadInst* const load = b.CreateAlignedLoad(type, address, natural(element));
      load->setAtomic(ordering_of(module_, op, "ordering"));
      return bind(module_.result(op), load);
    }
    case ViewAtomicStore: {
      llvm::StoreInst* const store =
          b.CreateAlignedStore(value(at.stored), address, natural(element));
      store->setAtomic(ordering_of(module_, op, "ordering"));
      return;
    }
    default: {
      llvm::Value* const expected = at.expected.valid() ? value(at.expected) : nullptr;
      llvm::Value* const old = emit_atomic_update(op, address, element, value(at.stored), expected);
      if (module_.op(op).result_count != 0) bind(module_.result(op), old);
    }
  }
}

// A counted loop.
void BodyLowering::each_round(uint64_t count,
                              const std::function<void(llvm::Value* number)>& body) {
  auto& b = builder_;
  llvm::BasicBlock* const before = b.GetInsertBlock();
  llvm::BasicBlock* const round = new_block();
  llvm::BasicBlock* const exit = new_block();
  b.CreateBr(round);
  b.SetInsertPoint(round);
  llvm::PHINode* const number = b.CreatePHI(b.getInt64Ty(), 2);
  number->addIncoming(b.getInt64(0), before);
  body(number);
  llvm::Value* const next = b.CreateAdd(number, b.getInt64(1), "", true, true);
  number->addIncoming(next, b.GetInsertBlock());
  b.CreateCondBr(b.CreateICmpULT(next, b.getInt64(count)), round, exit);
  b.SetInsertPoint(exit);
}

// The lanes one after the other, so that those that meet in one element take turns.
void BodyLowering::emit_vector_atomic(OpId op) {
  auto& b = builder_;
  const NamedAccess at(module_, op);
  const Type& vector = module_.types[module_.type_of(at.stored)];
  const ScalarKind element = vector.element;
  const auto lanes = static_cast<unsigned>(static_lanes(vector).value_or(0));
  llvm::Type* const type = llvm_type(b.getContext(), element);
  const auto spill = [&](llvm::Value* whole) {
    llvm::Value* const room = stack_room(whole->getType());
    b.CreateStore(whole, room);
    return room;
  };
  const auto lane_of = [&](llvm::Value* room, llvm::Type* scalar, llvm::Value* lane) {
    return b.CreateLoad(scalar, b.CreateInBoundsGEP(scalar, room, lane));
  };
  llvm::Value* const offsets = spill(
      b.CreateSExtOrTrunc(value(at.offsets), llvm::FixedVectorType::get(b.getInt64Ty(), lanes)));
  llvm::Value* const operands = spill(value(at.stored));
  llvm::Value* const expected = at.expected.valid() ? spill(value(at.expected)) : nullptr;
  llvm::Value* const mask =
      at.mask.valid() ? spill(to_memory(b, value(at.mask), ScalarKind::I1)) : nullptr;
  const bool returns = module_.op(op).result_count != 0;
  llvm::Type* const whole = llvm::FixedVectorType::get(type, lanes);
  llvm::Value* const results = !returns                 ? nullptr
                               : at.passthrough.valid() ? spill(value(at.passthrough))
                                                        : stack_room(whole);
  llvm::Value* const origin = b.CreateGEP(llvm_memory_type(b.getContext(), element), value(at.view),
                                          linear_index(at.view, at.indices, at.fixed));
  each_round(lanes, [&](llvm::Value* lane) {
    llvm::BasicBlock* const exit = mask != nullptr ? new_block() : nullptr;
    if (mask != nullptr) {
      llvm::BasicBlock* const active = new_block();
      b.CreateCondBr(b.CreateIsNotNull(lane_of(mask, b.getInt8Ty(), lane)), active, exit);
      b.SetInsertPoint(active);
    }
    llvm::Value* const address = b.CreateGEP(type, origin, lane_of(offsets, b.getInt64Ty(), lane));
    llvm::Value* const old =
        emit_atomic_update(op, address, element, lane_of(operands, type, lane),
                           expected != nullptr ? lane_of(expected, type, lane) : nullptr);
    if (returns) b.CreateStore(old, b.CreateInBoundsGEP(type, results, lane));
    if (mask == nullptr) return;
    b.CreateBr(exit);
    b.SetInsertPoint(exit);
  });
  if (returns) bind(module_.result(op), b.CreateLoad(whole, results));
}

}  // namespace loom
