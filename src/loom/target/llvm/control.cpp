// Switches, lookups, while loops and early exits.
#include <llvm/IR/IRBuilder.h>

#include "loom/dialect/op_info.h"
#include "loom/target/llvm/body.h"
#include "loom/target/llvm/frame.h"

namespace loom {

using enum OpKind;

void BodyLowering::open_switch(OpId op) {
  const auto keys = module_.attr(op, attr_slot(ScfSwitch, "keys")).ints;
  Frame frame{.kind = Frame::Kind::Switch, .op = op};
  frame.exit = new_block();
  for (size_t i = 0; i <= keys.size(); ++i) frame.blocks.push_back(new_block());
  llvm::SwitchInst* const choice = builder_.CreateSwitch(
      value(module_.operand(op, 0)), frame.blocks.back(), static_cast<unsigned>(keys.size()));
  for (size_t i = 0; i < keys.size(); ++i) {
    choice->addCase(builder_.getInt64(static_cast<uint64_t>(keys[i])), frame.blocks[i]);
  }
  frame.next = module_.region(module_.op_region(op, 0)).first;
  builder_.SetInsertPoint(frame.blocks[0]);
  frames_.push_back(std::move(frame));
}

void BodyLowering::close_switch(const Components& yielded) {
  auto& b = builder_;
  Frame& frame = frames_.back();
  frame.yields.emplace_back(yielded, b.GetInsertBlock());
  b.CreateBr(frame.exit);
  if (++frame.region < frame.blocks.size()) {
    frame.next = module_.region(module_.op_region(frame.op, frame.region)).first;
    b.SetInsertPoint(frame.blocks[frame.region]);
    return;
  }
  b.SetInsertPoint(frame.exit);
  Components results;
  for (size_t i = 0; i < yielded.size(); ++i) {
    llvm::PHINode* const result =
        b.CreatePHI(yielded[i]->getType(), static_cast<unsigned>(frame.yields.size()));
    for (const auto& [values, block] : frame.yields) result->addIncoming(values[i], block);
    results.push_back(result);
  }
  const OpId op = frame.op;
  frames_.pop_back();
  bind_all(results_of(op), results);
}

void BodyLowering::open_while(OpId op) {
  const RegionId before = module_.op_region(op, region_slot(ScfWhile, "before"));
  const Components initial = components_of(module_.operands(op));
  Frame frame{.kind = Frame::Kind::While, .op = op, .next = module_.region(before).first};
  frame.body = new_block();
  frame.exit = new_block();
  llvm::BasicBlock* const from = builder_.GetInsertBlock();
  builder_.CreateBr(frame.body);
  builder_.SetInsertPoint(frame.body);
  for (llvm::Value* const first : initial) {
    llvm::PHINode* const phi = builder_.CreatePHI(first->getType(), 2);
    phi->addIncoming(first, from);
    frame.carried.push_back(phi);
  }
  bind_all(module_.args(before), Components(frame.carried.begin(), frame.carried.end()));
  frames_.push_back(std::move(frame));
}

// The values of the condition go to the second region, and out of the loop.
void BodyLowering::end_condition(OpId terminator) {
  locate(terminator);
  Frame& frame = frames_.back();
  const RegionId body = module_.op_region(frame.op, region_slot(ScfWhile, "body"));
  const Components values = components_of(module_.operands(terminator).subspan(1));
  llvm::BasicBlock* const round = new_block();
  builder_.CreateCondBr(value(module_.operand(terminator, 0)), round, frame.exit);
  builder_.SetInsertPoint(round);
  frame.initial = values;
  frame.next = module_.region(body).first;
  bind_all(module_.args(body), values);
}

void BodyLowering::close_while(const Components& yielded) {
  const Frame frame = std::move(frames_.back());
  frames_.pop_back();
  llvm::BasicBlock* const latch = builder_.GetInsertBlock();
  builder_.CreateBr(frame.body);
  for (size_t i = 0; i < frame.carried.size(); ++i) {
    frame.carried[i]->addIncoming(yielded[i], latch);
  }
  builder_.SetInsertPoint(frame.exit);
  bind_all(results_of(frame.op), frame.initial);
}

void BodyLowering::emit_lookup(OpId op) {
  const auto keys = module_.attr(op, attr_slot(ScfLookup, "keys")).ints;
  llvm::Value* const selector =
      value(operand_group(module_, op, operand_slot(ScfLookup, "selector"))[0]);
  const auto rows = operand_group(module_, op, operand_slot(ScfLookup, "row"));
  const std::vector<ValueId> results = results_of(op);
  Components chosen = components_of(operand_group(module_, op, operand_slot(ScfLookup, "default")));
  for (size_t row = 0; row < keys.size(); ++row) {
    llvm::Value* const meant = builder_.CreateICmpEQ(selector, index_constant(keys[row]));
    const Components values = components_of(rows.subspan(row * results.size(), results.size()));
    for (size_t i = 0; i < chosen.size(); ++i) {
      chosen[i] = builder_.CreateSelect(meant, values[i], chosen[i]);
    }
  }
  bind_all(results, chosen);
}

// Invocations that leave run the region, if there is one, and then nothing more.
void BodyLowering::open_exit(OpId op) {
  llvm::BasicBlock* const leaving = new_block();
  llvm::BasicBlock* const staying = new_block();
  builder_.CreateCondBr(value(module_.operand(op, 0)), leaving, staying);
  builder_.SetInsertPoint(leaving);
  const RegionId body = module_.op_region(op, region_slot(KernelExit, "body"));
  frames_.push_back(
      {.kind = Frame::Kind::Exit, .op = op, .next = module_.region(body).first, .exit = staying});
}

void BodyLowering::close_exit() {
  builder_.CreateBr(queries_->exit_block());
  builder_.SetInsertPoint(frames_.back().exit);
  frames_.pop_back();
}

}  // namespace loom
