#include "loom/target/x86/group.h"

#include <llvm/IR/IRBuilder.h>

#include <algorithm>

#include "loom/base/check.h"
#include "loom/dialect/op_info.h"
#include "loom/target/llvm/meetings.h"
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
    if (end_ == nullptr) return;
    builder_.CreateBr(end_);
    builder_.SetInsertPoint(end_);
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
    if (!plan_.leaves) return;
    here_ = builder_.CreateAlloca(llvm::ArrayType::get(builder_.getInt1Ty(), items_));
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
  // What a uniform value is: that of the first workitem that is there.
  void bring_up(ValueId value) {
    llvm::Value* const first = team_ ? team_->first : builder_.getInt64(0);
    loops_.at_item(first);
    const Values parts = load(value, first);
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
        case GroupPart::Kind::While:
          emit_while(part);
          break;
        case GroupPart::Kind::If:
          emit_if(part);
          break;
        case GroupPart::Kind::Switch:
          emit_switch(part);
          break;
        case GroupPart::Kind::Exit:
          emit_exit(part);
          break;
        case GroupPart::Kind::Leave:
          emit_leave(part);
          break;
        case GroupPart::Kind::Subgroups:
          emit_subgroups(part);
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
  // All workitems but those that are behind the end of the loop around; of the subgroup that runs
  // by itself, if one does, those that did not leave.
  void each_active(const std::function<void(llvm::Value* flat)>& body) {
    if (team_) {
      return loops_.each_item_of(team_->begin, team_->end, lanes_, [&](llvm::Value* flat) {
        if (!team_->left) return body(flat);
        llvm::BasicBlock* const inside = block();
        llvm::BasicBlock* const after = block();
        builder_.CreateCondBr(is_here(flat), inside, after);
        builder_.SetInsertPoint(inside);
        body(flat);
        builder_.CreateBr(after);
        builder_.SetInsertPoint(after);
      });
    }
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

  void fetch(const GroupPart& part, llvm::Value* flat) {
    for (const OpId op : part.again) lowering_.lower_whole(op);
    for (const ValueId value : part.reads) lowering_.set_components(value, load(value, flat));
  }
  void emit_items(const GroupPart& part, std::span<const ValueId> from,
                  std::span<const ValueId> to) {
    each_active([&](llvm::Value* flat) {
      fetch(part, flat);
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
      const std::span inner(part.ways[0]);
      emit(inner.first(inner.size() - (last == nullptr ? 0 : 1)));
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

  // What the regions yield goes to the operation's results.
  void emit_ways(const GroupPart& part, std::span<llvm::BasicBlock* const> ways) {
    llvm::BasicBlock* const exit = block();
    const std::vector<ValueId> results = results_of(part.op);
    for (unsigned i = 0; i < part.ways.size(); ++i) {
      builder_.SetInsertPoint(ways[i]);
      emit(part.ways[i]);
      const RegionId region = module_.op_region(part.op, i);
      if (module_.region(region).has_body) move(yielded(region), results);
      builder_.CreateBr(exit);
    }
    builder_.SetInsertPoint(exit);
  }
  void emit_if(const GroupPart& part) {
    const ValueId condition = module_.operand(part.op, 0);
    bring_up(condition);
    llvm::BasicBlock* const ways[] = {block(), block()};
    builder_.CreateCondBr(lowering_.components(condition)[0], ways[0], ways[1]);
    emit_ways(part, ways);
  }
  void emit_switch(const GroupPart& part) {
    auto& b = builder_;
    const ValueId selector = module_.operand(part.op, 0);
    bring_up(selector);
    const auto keys = module_.attr(part.op, attr_slot(ScfSwitch, "keys")).ints;
    std::vector<llvm::BasicBlock*> ways;
    for (size_t i = 0; i <= keys.size(); ++i) ways.push_back(block());
    llvm::SwitchInst* const choice = b.CreateSwitch(lowering_.components(selector)[0], ways.back(),
                                                    static_cast<unsigned>(keys.size()));
    for (size_t i = 0; i < keys.size(); ++i) {
      choice->addCase(b.getInt64(static_cast<uint64_t>(keys[i])), ways[i]);
    }
    emit_ways(part, ways);
  }

  // The values of the condition go to the second region, and out of the loop.
  void emit_while(const GroupPart& part) {
    auto& b = builder_;
    const RegionId before = module_.op_region(part.op, region_slot(ScfWhile, "before"));
    const RegionId body = module_.op_region(part.op, region_slot(ScfWhile, "body"));
    const auto decided = module_.operands(module_.region(before).last);
    llvm::BasicBlock* const round = block();
    llvm::BasicBlock* const inside = block();
    llvm::BasicBlock* const exit = block();
    move(module_.operands(part.op), module_.args(before));
    b.CreateBr(round);
    b.SetInsertPoint(round);
    emit(part.ways[0]);
    bring_up(decided[0]);
    b.CreateCondBr(lowering_.components(decided[0])[0], inside, exit);
    b.SetInsertPoint(inside);
    move(decided.subspan(1), module_.args(body));
    emit(part.ways[1]);
    move(yielded(body), module_.args(before));
    b.CreateBr(round);
    b.SetInsertPoint(exit);
    move(decided.subspan(1), results_of(part.op));
  }

  // --- early exits ------------------------------------------------------------------------------

  // All of the workgroup, or of the subgroup that runs by itself, end or none.
  void emit_exit(const GroupPart& part) {
    const ValueId condition = module_.operand(part.op, 0);
    bring_up(condition);
    llvm::BasicBlock* const leaving = block();
    llvm::BasicBlock* const staying = block();
    builder_.CreateCondBr(lowering_.components(condition)[0], leaving, staying);
    builder_.SetInsertPoint(leaving);
    emit(part.ways[0]);
    if (!team_ && end_ == nullptr) end_ = block();
    builder_.CreateBr(team_ ? team_->done : end_);
    builder_.SetInsertPoint(staying);
  }

  llvm::Value* is_here(llvm::Value* flat) {
    return builder_.CreateLoad(builder_.getInt1Ty(), place(here_, flat));
  }
  void emit_leave(const GroupPart& part) {
    auto& b = builder_;
    const OpId op = part.ops[0];
    each_active([&](llvm::Value* flat) {
      fetch(part, flat);
      llvm::Value* const ends = lowering_.components(module_.operand(op, 0))[0];
      b.CreateStore(b.CreateNot(ends), place(here_, flat));
      lowering_.lower_whole(op);
    });
    team_->left = true;
    // The first one that is left; where there is none, the subgroup is done.
    llvm::Value* const end = team_->end;
    team_->first = over(b.CreateSub(end, team_->begin), end, [&](llvm::Value* n, llvm::Value* so) {
      llvm::Value* const flat = b.CreateAdd(team_->begin, n);
      llvm::Value* const least = b.CreateBinaryIntrinsic(llvm::Intrinsic::umin, so, flat);
      return b.CreateSelect(is_here(flat), least, so);
    });
    llvm::BasicBlock* const going = block();
    b.CreateCondBr(b.CreateICmpEQ(team_->first, end), team_->done, going);
    b.SetInsertPoint(going);
  }

  // A subgroup that runs by itself: the workitems [begin, end).
  struct Team {
    llvm::Value* begin;
    llvm::Value* end;
    llvm::Value* first;      // that is there
    llvm::BasicBlock* done;  // where those go that leave
    bool left;               // some may have left
  };
  void emit_subgroups(const GroupPart& part) {
    auto& b = builder_;
    const auto zero = [&] { return b.getInt64(0); };
    over(b.getInt64((items_ + lanes_ - 1) / lanes_), zero(), [&](llvm::Value* n, llvm::Value* so) {
      llvm::Value* const begin = b.CreateMul(n, b.getInt64(lanes_), "", true, true);
      llvm::Value* const full = b.CreateAdd(begin, b.getInt64(lanes_), "", true, true);
      llvm::Value* const end =
          items_ % lanes_ == 0
              ? full
              : b.CreateBinaryIntrinsic(llvm::Intrinsic::umin, full, b.getInt64(items_));
      team_ = Team{begin, end, begin, block(), false};
      emit(part.ways[0]);
      b.CreateBr(team_->done);
      b.SetInsertPoint(team_->done);
      team_.reset();
      return so;
    });
  }

  // --- meetings ---------------------------------------------------------------------------------

  using Step = std::function<llvm::Value*(llvm::Value* number, llvm::Value* so_far)>;
  // A loop over the numbers from 0 to below `end`, which is not 0, that carries one value.
  llvm::Value* over(llvm::Value* end, llvm::Value* initial, const Step& step) {
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
    llvm::Value* const next_sum = step(count, sum);
    llvm::Value* const next = b.CreateAdd(count, b.getInt64(1), "", true, true);
    llvm::BasicBlock* const latch = b.GetInsertBlock();
    b.CreateCondBr(b.CreateICmpULT(next, end), round, exit);
    count->addIncoming(next, latch);
    sum->addIncoming(next_sum, latch);
    b.SetInsertPoint(exit);
    return next_sum;
  }
  // The same over all workitems, forward or backward.
  llvm::Value* fold(llvm::Value* initial, bool reverse, const Step& step) {
    return over(builder_.getInt64(items_), initial, [&](llvm::Value* count, llvm::Value* sum) {
      llvm::Value* const last = builder_.getInt64(items_ - 1);
      return step(reverse ? builder_.CreateSub(last, count) : count, sum);
    });
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
    if (team_ && team_->left) {
      subgroups.after_exits(team_->first, [&](llvm::Value* flat) { return is_here(flat); });
    }
    each_active([&](llvm::Value* flat) { subgroups.emit(op, flat); });
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
  llvm::AllocaInst* here_ = nullptr;  // by workitem: it did not leave
  llvm::BasicBlock* end_ = nullptr;   // behind all parts, where an exit needs it
  std::optional<Lag> lag_;
  std::optional<Team> team_;
};

}  // namespace

void emit_group_parts(const Module& module, const KernelPlan& kernel, llvm::BasicBlock* entry,
                      llvm::IRBuilderBase& builder, BodyLowering& lowering, ItemLoops& loops) {
  Parts(module, kernel, entry, builder, lowering, loops).emit();
}

}  // namespace loom
