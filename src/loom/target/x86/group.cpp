#include "loom/target/x86/group.h"

#include <llvm/IR/IRBuilder.h>

#include <algorithm>

#include "loom/base/check.h"
#include "loom/dialect/op_info.h"
#include "loom/target/x86/subgroups.h"

namespace loom {
namespace {

using enum OpKind;
using Values = std::vector<llvm::Value*>;

class Parts {
 public:
  Parts(const Module& module, const KernelPlan& kernel, llvm::BasicBlock* entry,
        llvm::IRBuilderBase& builder, BodyLowering& lowering, ItemLoops& loops)
      : module_(module),
        plan_(*kernel.group),
        items_(*kernel.items()),
        lanes_(kernel.subgroup_lanes),
        entry_(entry),
        builder_(builder),
        lowering_(lowering),
        loops_(loops) {}

  void emit() {
    allocate_slots();
    emit(plan_.parts);
  }

 private:
  void allocate_slots() {
    llvm::IRBuilderBase::InsertPointGuard guard(builder_);
    builder_.SetInsertPoint(entry_, entry_->begin());
    for (const ValueId value : plan_.slot_order) {
      std::vector<llvm::AllocaInst*>& slots = slots_[value.index()];
      for (llvm::Type* const type : lowering_.component_types(module_.type_of(value))) {
        slots.push_back(builder_.CreateAlloca(llvm::ArrayType::get(type, items_)));
        slots.back()->setAlignment(llvm::Align(64));
      }
    }
  }
  bool in_slot(ValueId value) const { return plan_.slots.contains(value.index()); }

  llvm::Value* place(llvm::AllocaInst* slot, llvm::Value* flat) {
    return builder_.CreateInBoundsGEP(slot->getAllocatedType(), slot, {builder_.getInt64(0), flat});
  }
  Values load(ValueId value, llvm::Value* flat) {
    if (!in_slot(value)) {
      for (const OpId op : plan_.chain(module_, {&value, 1})) lowering_.lower_whole(op);
      return lowering_.components(value);
    }
    Values parts;
    for (llvm::AllocaInst* const slot : slots_.at(value.index())) {
      parts.push_back(
          builder_.CreateLoad(slot->getAllocatedType()->getArrayElementType(), place(slot, flat)));
    }
    return parts;
  }
  void store(ValueId value, const Values& parts, llvm::Value* flat) {
    const auto& slots = slots_.at(value.index());
    for (size_t i = 0; i < slots.size(); ++i) builder_.CreateStore(parts[i], place(slots[i], flat));
  }
  // What a uniform value is: that of the first workitem.
  void bring_up(ValueId value) {
    loops_.at_first_item();
    const Values parts = load(value, builder_.getInt64(0));
    if (in_slot(value)) lowering_.set_components(value, parts);
  }
  // Moves values to slots, for each workitem all at once.
  void move(std::span<const ValueId> from, std::span<const ValueId> to) {
    if (from.empty()) return;
    each_active([&](llvm::Value* flat) { move(from, to, flat); });
  }
  void move(std::span<const ValueId> from, std::span<const ValueId> to, llvm::Value* flat) {
    std::vector<Values> moved;
    for (const ValueId value : from) moved.push_back(load(value, flat));
    for (size_t i = 0; i < to.size(); ++i) store(to[i], moved[i], flat);
  }

  void emit(std::span<const GroupPart> parts) {
    for (const GroupPart& part : parts) {
      switch (part.kind) {
        case GroupPart::Kind::Items:
          emit_items(part, {}, {});
          break;
        case GroupPart::Kind::Uniform:
          lowering_.lower_whole(part.op);
          break;
        case GroupPart::Kind::Meeting:
          emit_meeting(part.op);
          break;
        case GroupPart::Kind::For:
          emit_for(part);
          break;
        case GroupPart::Kind::If:
          emit_if(part);
          break;
      }
    }
  }

  // A loop in which workitems lag, while its rounds are emitted.
  struct Lag {
    ValueId number;
    llvm::Value* first;  // of the first workitem
    int64_t stride;
    llvm::Value* high;
    bool is_last;  // a round in which some workitems may be behind the end
  };
  llvm::Value* number_of_item() {
    auto& b = builder_;
    return b.CreateAdd(lag_->first,
                       b.CreateMul(loops_.along_x(),
                                   b.getInt64(static_cast<uint64_t>(lag_->stride)), "", true, true),
                       "", false, true);
  }
  // All workitems but those that are behind the end of the loop around.
  void each_active(const std::function<void(llvm::Value* flat)>& body) {
    loops_.each_item([&](llvm::Value* flat) {
      if (!lag_) return body(flat);
      auto& b = builder_;
      llvm::Value* const number = number_of_item();
      lowering_.set_components(lag_->number, {&number, 1});
      if (!lag_->is_last) return body(flat);
      // The distance is compared, so that nothing is computed past the domain.
      llvm::Value* const behind =
          b.CreateMul(loops_.along_x(), b.getInt64(static_cast<uint64_t>(lag_->stride)));
      llvm::Value* const left = b.CreateSub(lag_->high, lag_->first);
      llvm::BasicBlock* const inside = block();
      llvm::BasicBlock* const after = block();
      b.CreateCondBr(b.CreateICmpULT(behind, left), inside, after);
      b.SetInsertPoint(inside);
      body(flat);
      b.CreateBr(after);
      b.SetInsertPoint(after);
    });
  }

  void emit_items(const GroupPart& part, std::span<const ValueId> from,
                  std::span<const ValueId> to) {
    each_active([&](llvm::Value* flat) {
      for (const OpId op : part.again) lowering_.lower_whole(op);
      for (const ValueId value : part.reads) lowering_.set_components(value, load(value, flat));
      for (const OpId op : part.ops) lowering_.lower_whole(op);
      for (const ValueId value : part.writes) store(value, lowering_.components(value), flat);
      move(from, to, flat);
    });
  }

  llvm::BasicBlock* block() {
    return llvm::BasicBlock::Create(builder_.getContext(), "", entry_->getParent());
  }
  std::vector<ValueId> results_of(OpId op) const {
    std::vector<ValueId> results;
    results.reserve(module_.op(op).result_count);
    for (unsigned i = 0; i < module_.op(op).result_count; ++i) {
      results.push_back(module_.result(op, i));
    }
    return results;
  }
  std::span<const ValueId> yielded(RegionId region) const {
    OpId last;
    for (OpId op = module_.region(region).first; op.valid(); op = module_.op(op).next) last = op;
    if (!last.valid() || module_.op(last).kind != ScfYield) return {};
    return module_.operands(last);
  }

  void emit_for(const GroupPart& part) {
    auto& b = builder_;
    const auto operand = [&](unsigned slot) {
      const ValueId value = operand_group(module_, part.op, slot)[0];
      bring_up(value);
      return lowering_.components(value)[0];
    };
    llvm::Value* const low = operand(operand_slot(ScfFor, "lo"));
    llvm::Value* const high = operand(operand_slot(ScfFor, "hi"));
    llvm::Value* const step = operand(operand_slot(ScfFor, "step"));
    const ValueId first = operand_group(module_, part.op, operand_slot(ScfFor, "lo"))[0];
    const bool is_offset = module_.types.is(module_.type_of(first), ScalarKind::Offset);
    const RegionId body = module_.op_region(part.op, region_slot(ScfFor, "body"));
    const auto args = module_.args(body);
    const auto carried = args.subspan(1);
    move(operand_group(module_, part.op, operand_slot(ScfFor, "init")), carried);

    llvm::BasicBlock* const before = b.GetInsertBlock();
    llvm::BasicBlock* const round = block();
    llvm::BasicBlock* const exit = block();
    b.CreateCondBr(is_offset ? b.CreateICmpULT(low, high) : b.CreateICmpSLT(low, high), round,
                   exit);
    b.SetInsertPoint(round);
    llvm::PHINode* const induction = b.CreatePHI(b.getInt64Ty(), 2);
    induction->addIncoming(low, before);
    const auto left = [&](llvm::PHINode* number) { return b.CreateSub(high, number); };
    // The distance that is left is compared, so that the next value is never past the domain.
    const auto close = [&](llvm::PHINode* number, llvm::BasicBlock* head) {
      const GroupPart* const last = part.yielding();
      emit(std::span(part.inner).first(part.inner.size() - (last == nullptr ? 0 : 1)));
      if (last != nullptr) {
        emit_items(*last, yielded(body), carried);
      } else {
        move(yielded(body), carried);
      }
      llvm::Value* const again = b.CreateICmpUGT(left(number), step);
      number->addIncoming(b.CreateAdd(number, step), b.GetInsertBlock());
      b.CreateCondBr(again, head, exit);
    };
    if (part.lag == 0) {
      llvm::Value* const number = induction;
      lowering_.set_components(args[0], {&number, 1});
      close(induction, round);
    } else {
      // Rounds for all workitems, then those that the last ones sit out.
      const uint64_t reach = loops_.most_along_x() * static_cast<uint64_t>(part.lag);
      llvm::BasicBlock* const whole = block();
      llvm::BasicBlock* const partial = block();
      b.CreateCondBr(b.CreateICmpUGT(left(induction), b.getInt64(reach)), whole, partial);
      b.SetInsertPoint(whole);
      lag_ = Lag{args[0], induction, part.lag, high, false};
      close(induction, round);
      b.SetInsertPoint(partial);
      llvm::PHINode* const rest = b.CreatePHI(b.getInt64Ty(), 2);
      rest->addIncoming(induction, round);
      lag_ = Lag{args[0], rest, part.lag, high, true};
      close(rest, partial);
      lag_.reset();
    }
    b.SetInsertPoint(exit);
    move(carried, results_of(part.op));
  }

  void emit_if(const GroupPart& part) {
    auto& b = builder_;
    const ValueId condition = module_.operand(part.op, 0);
    bring_up(condition);
    llvm::BasicBlock* const then_block = block();
    llvm::BasicBlock* const else_block = block();
    llvm::BasicBlock* const exit = block();
    b.CreateCondBr(lowering_.components(condition)[0], then_block, else_block);
    const std::vector<ValueId> results = results_of(part.op);
    b.SetInsertPoint(then_block);
    emit(part.inner);
    move(yielded(module_.op_region(part.op, region_slot(ScfIf, "then"))), results);
    b.CreateBr(exit);
    b.SetInsertPoint(else_block);
    const RegionId other = module_.op_region(part.op, region_slot(ScfIf, "else"));
    if (module_.region(other).has_body) {
      emit(part.other);
      move(yielded(other), results);
    }
    b.CreateBr(exit);
    b.SetInsertPoint(exit);
  }

  // --- meetings ---------------------------------------------------------------------------------

  // A loop over all workitems, forward or backward, that carries one value.
  llvm::Value* fold(llvm::Value* initial, bool reverse,
                    const std::function<llvm::Value*(llvm::Value* flat, llvm::Value* sum)>& step) {
    auto& b = builder_;
    llvm::BasicBlock* const before = b.GetInsertBlock();
    llvm::BasicBlock* const round = block();
    llvm::BasicBlock* const exit = block();
    b.CreateBr(round);
    b.SetInsertPoint(round);
    llvm::PHINode* const count = b.CreatePHI(b.getInt64Ty(), 2);
    llvm::PHINode* const sum = b.CreatePHI(initial->getType(), 2);
    count->addIncoming(b.getInt64(0), before);
    sum->addIncoming(initial, before);
    llvm::Value* const flat = reverse ? b.CreateSub(b.getInt64(items_ - 1), count) : count;
    llvm::Value* const next_sum = step(flat, sum);
    llvm::Value* const next = b.CreateAdd(count, b.getInt64(1), "", true, true);
    llvm::BasicBlock* const latch = b.GetInsertBlock();
    b.CreateCondBr(b.CreateICmpULT(next, b.getInt64(items_)), round, exit);
    count->addIncoming(next, latch);
    sum->addIncoming(next_sum, latch);
    b.SetInsertPoint(exit);
    return next_sum;
  }

  void emit_meeting(OpId op) {
    auto& b = builder_;
    const OpKind kind = module_.op(op).kind;
    if (kind == KernelBarrier) return;
    if (is_subgroup_collective(kind)) return emit_subgroup(op);
    const ValueId operand = module_.operand(op, 0);
    const ValueId result = module_.result(op);
    const auto member = [&](llvm::Value* flat) { return load(operand, flat)[0]; };
    if (kind == KernelWorkgroupReduce || kind == KernelWorkgroupScan) {
      return kind == KernelWorkgroupReduce ? emit_reduce(op) : emit_scan(op);
    }
    llvm::Value* outcome = nullptr;
    if (kind == KernelWorkgroupVoteCount) {
      llvm::Type* const type = lowering_.component_types(module_.type_of(result))[0];
      outcome =
          fold(llvm::ConstantInt::get(type, 0), false, [&](llvm::Value* flat, llvm::Value* sum) {
            return b.CreateAdd(sum, b.CreateZExt(member(flat), type));
          });
    } else {
      const bool any = kind == KernelWorkgroupVoteAny;
      outcome = fold(b.getInt1(!any), false, [&](llvm::Value* flat, llvm::Value* sum) {
        return any ? b.CreateOr(sum, member(flat)) : b.CreateAnd(sum, member(flat));
      });
    }
    lowering_.set_components(result, {&outcome, 1});
  }

  void emit_subgroup(OpId op) {
    Subgroups subgroups(
        module_, items_, lanes_, builder_, lowering_,
        [&](ValueId value, llvm::Value* flat) { return load(value, flat)[0]; },
        [&](ValueId value, llvm::Value* from, llvm::Value* flat) { store(value, {from}, flat); });
    loops_.each_item([&](llvm::Value* flat) { subgroups.emit(op, flat); });
  }

  CombiningKind combining(OpId op) const {
    static_assert(attr_slot(KernelWorkgroupReduce, "kind") ==
                  attr_slot(KernelWorkgroupScan, "kind"));
    return static_cast<CombiningKind>(
        module_.attr(op, attr_slot(KernelWorkgroupReduce, "kind")).bits);
  }
  ScalarKind element(ValueId value) const { return module_.types[module_.type_of(value)].element; }

  // In the order of the workitems, beginning with the first one's value itself: a neutral element
  // in front could change a zero's sign.
  void emit_reduce(OpId op) {
    const ValueId operand = module_.operand(op, 0);
    llvm::Value* const first = load(operand, builder_.getInt64(0))[0];
    llvm::Value* const sum = fold(first, false, [&](llvm::Value* flat, llvm::Value* so_far) {
      llvm::Value* const next =
          lowering_.combine(combining(op), 0, element(operand), so_far, load(operand, flat)[0]);
      return builder_.CreateSelect(builder_.CreateIsNull(flat), so_far, next);
    });
    lowering_.set_components(module_.result(op), {&sum, 1});
  }

  void emit_scan(OpId op) {
    auto& b = builder_;
    const ValueId operand = module_.operand(op, 0);
    const ValueId result = module_.result(op);
    const bool exclusive =
        static_cast<ScanMode>(module_.attr(op, attr_slot(KernelWorkgroupScan, "mode")).bits) ==
        ScanMode::Exclusive;
    const bool reverse = static_cast<ScanDirection>(
                             module_.attr(op, attr_slot(KernelWorkgroupScan, "direction")).bits) ==
                         ScanDirection::Reverse;
    llvm::Value* const start = b.getInt64(reverse ? items_ - 1 : 0);
    llvm::Value* const neutral = lowering_.neutral_value(combining(op), module_.type_of(operand));
    fold(load(operand, start)[0], reverse, [&](llvm::Value* flat, llvm::Value* sum) {
      llvm::Value* const is_first = b.CreateICmpEQ(flat, start);
      llvm::Value* const next =
          lowering_.combine(combining(op), 0, element(operand), sum, load(operand, flat)[0]);
      llvm::Value* const with_own = b.CreateSelect(is_first, sum, next);
      store(result, {exclusive ? b.CreateSelect(is_first, neutral, sum) : with_own}, flat);
      return with_own;
    });
  }

  const Module& module_;
  const GroupPlan& plan_;
  const uint64_t items_;
  const uint64_t lanes_;
  llvm::BasicBlock* entry_;
  llvm::IRBuilderBase& builder_;
  BodyLowering& lowering_;
  ItemLoops& loops_;
  std::unordered_map<uint32_t, std::vector<llvm::AllocaInst*>> slots_;
  std::optional<Lag> lag_;
};

}  // namespace

void emit_group_parts(const Module& module, const KernelPlan& kernel, llvm::BasicBlock* entry,
                      llvm::IRBuilderBase& builder, BodyLowering& lowering, ItemLoops& loops) {
  Parts(module, kernel, entry, builder, lowering, loops).emit();
}

}  // namespace loom
