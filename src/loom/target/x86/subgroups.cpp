#include "loom/target/x86/subgroups.h"

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Intrinsics.h>

#include <bit>

#include "loom/base/check.h"
#include "loom/dialect/op_info.h"

namespace loom {

using enum OpKind;

namespace {

std::optional<uint64_t> number(const Module& module, OpId op, std::string_view name) {
  const OpInfo& info = op_info(module.op(op).kind);
  for (unsigned slot = 0; slot < info.attrs.size(); ++slot) {
    if (info.attrs[slot].name != name || !module.has_attr(op, slot)) continue;
    const Attr& attr = module.attr(op, slot);
    return attr.kind == AttrKind::Integer ? static_cast<uint64_t>(attr.value()) : attr.bits;
  }
  return std::nullopt;
}

}  // namespace

// A lane that the last subgroup lacks does not exist, nor does one that left.
llvm::Value* Subgroups::exists(llvm::Value* flat) {
  llvm::Value* const inside = builder_.CreateICmpULT(flat, builder_.getInt64(items_));
  if (!is_here_) return inside;
  return builder_.CreateAnd(inside, is_here_(builder_.CreateSelect(inside, flat, flat_)));
}

// A loop over the lanes of the subgroup, forward or backward, that carries one value.
llvm::Value* Subgroups::over_lanes(llvm::Value* initial, bool reverse, const Step& step) {
  auto& b = builder_;
  llvm::Function* const function = b.GetInsertBlock()->getParent();
  llvm::BasicBlock* const before = b.GetInsertBlock();
  llvm::BasicBlock* const round = llvm::BasicBlock::Create(b.getContext(), "", function);
  llvm::BasicBlock* const exit = llvm::BasicBlock::Create(b.getContext(), "", function);
  b.CreateBr(round);
  b.SetInsertPoint(round);
  llvm::PHINode* const count = b.CreatePHI(b.getInt64Ty(), 2);
  llvm::PHINode* const so_far = b.CreatePHI(initial->getType(), 2);
  count->addIncoming(b.getInt64(0), before);
  so_far->addIncoming(initial, before);
  llvm::Value* const lane = reverse ? b.CreateSub(b.getInt64(lanes_ - 1), count) : count;
  llvm::Value* const other = b.CreateAdd(first_, lane);
  llvm::Value* const next_value = step(other, lane, exists(other), so_far);
  llvm::Value* const next = b.CreateAdd(count, b.getInt64(1), "", true, true);
  count->addIncoming(next, b.GetInsertBlock());
  so_far->addIncoming(next_value, b.GetInsertBlock());
  b.CreateCondBr(b.CreateICmpULT(next, b.getInt64(lanes_)), round, exit);
  b.SetInsertPoint(exit);
  return next_value;
}

// The value of another workitem; of this one where that does not exist.
llvm::Value* Subgroups::member(ValueId value, llvm::Value* flat, llvm::Value* exists) {
  return load_(value, builder_.CreateSelect(exists, flat, flat_));
}

// Lanes of one cluster have one number.
llvm::Value* Subgroups::cluster(OpId op, llvm::Value* lane) {
  const uint64_t size = number(module_, op, "cluster_size").value_or(0);
  if (size == 0) return builder_.getInt64(0);
  const uint64_t stride = number(module_, op, "cluster_stride").value_or(1);
  llvm::Value* const block = builder_.CreateUDiv(lane, builder_.getInt64(size * stride));
  return builder_.CreateAdd(builder_.CreateMul(block, builder_.getInt64(stride)),
                            builder_.CreateURem(lane, builder_.getInt64(stride)));
}

llvm::Value* Subgroups::same_bits(llvm::Value* a, llvm::Value* b) {
  auto& ir = builder_;
  llvm::Type* const type = a->getType();
  llvm::Type* const bits =
      ir.getIntNTy(static_cast<unsigned>(type->getPrimitiveSizeInBits().getFixedValue()));
  return ir.CreateICmpEQ(ir.CreateBitCast(a, bits), ir.CreateBitCast(b, bits));
}

// Reductions and scans, in the order of the lanes or against it, beginning with the first value
// itself: a neutral element in front could change a zero's sign.
void Subgroups::combine(OpId op) {
  auto& b = builder_;
  const ValueId operand = module_.operand(op, 0);
  const Type& info = module_.types[module_.type_of(operand)];
  const bool scans = module_.op(op).kind == KernelSubgroupScan;
  const bool reverse =
      scans && number(module_, op, "direction") == static_cast<uint64_t>(ScanDirection::Reverse);
  const bool exclusive =
      scans && number(module_, op, "mode") == static_cast<uint64_t>(ScanMode::Exclusive);
  const auto kind = static_cast<CombiningKind>(number(module_, op, "kind").value());
  llvm::Value* const own_cluster = cluster(op, lane_);
  llvm::Value* const neutral = lowering_.neutral_value(kind, module_.type_of(operand));
  // Whether there was a value already is carried in front of the sum.
  llvm::Type* const both =
      llvm::StructType::get(b.getContext(), {b.getInt1Ty(), neutral->getType()});
  llvm::Value* initial = b.CreateInsertValue(llvm::PoisonValue::get(both), b.getFalse(), 0);
  initial = b.CreateInsertValue(initial, neutral, 1);
  llvm::Value* const folded = over_lanes(
      initial, reverse,
      [&](llvm::Value* other, llvm::Value* lane, llvm::Value* exists, llvm::Value* so_far) {
        llvm::Value* counts = b.CreateAnd(exists, b.CreateICmpEQ(cluster(op, lane), own_cluster));
        if (scans) {
          llvm::Value* const before =
              reverse ? b.CreateICmpUGT(lane, lane_) : b.CreateICmpULT(lane, lane_);
          llvm::Value* const taken =
              exclusive ? before : b.CreateOr(before, b.CreateICmpEQ(lane, lane_));
          counts = b.CreateAnd(counts, taken);
        }
        llvm::Value* const value = member(operand, other, exists);
        llvm::Value* const had = b.CreateExtractValue(so_far, 0);
        llvm::Value* const sum = b.CreateExtractValue(so_far, 1);
        llvm::Value* const more =
            b.CreateSelect(had, lowering_.combine(kind, 0, info.element, sum, value), value);
        llvm::Value* next = b.CreateInsertValue(so_far, b.CreateOr(had, counts), 0);
        return b.CreateInsertValue(next, b.CreateSelect(counts, more, sum), 1);
      });
  store_(module_.result(op), b.CreateExtractValue(folded, 1), flat_);
}

void Subgroups::shuffle(OpId op) {
  auto& b = builder_;
  const ValueId operand = module_.operand(op, 0);
  const auto wide = [&](unsigned i) {
    return b.CreateSExt(load_(module_.operand(op, i), flat_), b.getInt64Ty());
  };
  llvm::Value* const amount = wide(1);
  llvm::Value* const width = wide(2);
  llvm::Value* const base = b.CreateAnd(lane_, b.CreateNeg(width));  // a power of two
  llvm::Value* from = nullptr;
  switch (static_cast<ShuffleKind>(number(module_, op, "kind").value())) {
    case ShuffleKind::Xor:
      from = b.CreateXor(lane_, amount);
      break;
    case ShuffleKind::Up:
      from = b.CreateSub(lane_, amount);
      break;
    case ShuffleKind::Down:
      from = b.CreateAdd(lane_, amount);
      break;
    case ShuffleKind::Index:
      from = b.CreateAdd(base, amount);
      break;
  }
  llvm::Value* const source = b.CreateAdd(first_, from);
  llvm::Value* valid = b.CreateICmpSGE(from, base);
  valid = b.CreateAnd(valid, b.CreateICmpSLT(from, b.CreateAdd(base, width)));
  // A group of lanes may reach past a subgroup that holds no whole number of them.
  if (!std::has_single_bit(lanes_)) {
    valid = b.CreateAnd(valid, b.CreateICmpULT(from, b.getInt64(lanes_)));
  }
  valid = b.CreateAnd(valid, exists(source));
  store_(module_.result(op), member(operand, source, valid), flat_);
  store_(module_.result(op, 1), valid, flat_);
}

void Subgroups::vote(OpId op) {
  auto& b = builder_;
  const bool any = module_.op(op).kind == KernelSubgroupVoteAny;
  llvm::Value* const outcome =
      over_lanes(b.getInt1(!any), false,
                 [&](llvm::Value* other, llvm::Value*, llvm::Value* exists, llvm::Value* so_far) {
                   llvm::Value* const holds = member(module_.operand(op, 0), other, exists);
                   return any ? b.CreateOr(so_far, b.CreateAnd(exists, holds))
                              : b.CreateAnd(so_far, b.CreateOr(b.CreateNot(exists), holds));
                 });
  store_(module_.result(op), outcome, flat_);
}

// A bit for each lane that exists and of which something holds.
void Subgroups::masks(OpId op) {
  auto& b = builder_;
  const OpKind kind = module_.op(op).kind;
  llvm::Type* const type = lowering_.component_types(module_.type_of(module_.result(op)))[0];
  const ValueId operand = kind == KernelSubgroupActiveMask ? ValueId() : module_.operand(op, 0);
  llvm::Value* const own = operand.valid() ? load_(operand, flat_) : nullptr;
  const auto bits_of = [&](bool only_existing) {
    return over_lanes(
        llvm::ConstantInt::get(type, 0), false,
        [&](llvm::Value* other, llvm::Value* lane, llvm::Value* exists, llvm::Value* so_far) {
          llvm::Value* set = exists;
          if (!only_existing) {
            llvm::Value* const value = member(operand, other, exists);
            set = b.CreateAnd(exists,
                              kind == KernelSubgroupVoteBallot ? value : same_bits(own, value));
          }
          llvm::Value* const bit =
              b.CreateShl(llvm::ConstantInt::get(type, 1), b.CreateZExtOrTrunc(lane, type));
          return b.CreateOr(so_far, b.CreateSelect(set, bit, llvm::ConstantInt::get(type, 0)));
        });
  };
  llvm::Value* mask = bits_of(kind == KernelSubgroupActiveMask);
  if (kind == KernelSubgroupMatchAll) {
    llvm::Value* const all = b.CreateICmpEQ(mask, bits_of(true));
    mask = b.CreateSelect(all, mask, llvm::ConstantInt::get(type, 0));
    store_(module_.result(op, 1), all, flat_);
  }
  store_(module_.result(op), mask, flat_);
}

void Subgroups::emit(OpId op, llvm::Value* flat) {
  auto& b = builder_;
  flat_ = flat;
  lane_ = b.CreateURem(flat, b.getInt64(lanes_));
  first_ = b.CreateSub(flat, lane_);
  switch (module_.op(op).kind) {
    case KernelSubgroupReduce:
    case KernelSubgroupScan:
      return combine(op);
    case KernelSubgroupShuffle:
      return shuffle(op);
    case KernelSubgroupBroadcast: {
      llvm::Value* const lane = b.CreateSExt(load_(module_.operand(op, 1), flat_), b.getInt64Ty());
      llvm::Value* const source = b.CreateAdd(first_, lane);
      return store_(module_.result(op), member(module_.operand(op, 0), source, exists(source)),
                    flat_);
    }
    case KernelSubgroupBroadcastFirst:
      return store_(module_.result(op),
                    load_(module_.operand(op, 0), is_here_ ? first_here_ : first_), flat_);
    case KernelSubgroupVoteAny:
    case KernelSubgroupVoteAll:
      return vote(op);
    default:
      return masks(op);
  }
}

}  // namespace loom
