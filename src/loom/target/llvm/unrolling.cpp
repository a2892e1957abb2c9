// How often LLVM may repeat the body of a loop.
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

#include "loom/dialect/op_info.h"
#include "loom/target/llvm/body.h"
#include "loom/target/llvm/frame.h"

namespace loom {

using enum OpKind;

namespace {

// A processor learns the stride of a stream from the address of a load. With more than some sixteen
// loads of one stream it no longer does (measured: row sums in the second-level cache take 2.0 us
// instead of 1.36 us), so a round of a loop that streams reads at most this much.
constexpr uint64_t kRoundBytes = 1024;
// What loads fewer bytes in all its rounds together is no stream.
constexpr uint64_t kStreamBytes = 2048;

// What a block reads that reads one vector and writes nothing; 0 for others.
uint64_t bytes_of_only_load(const llvm::BasicBlock& block) {
  const llvm::LoadInst* load = nullptr;
  for (const llvm::Instruction& one : block) {
    if (llvm::isa<llvm::StoreInst>(one)) return 0;
    const auto* const next = llvm::dyn_cast<llvm::LoadInst>(&one);
    if (next == nullptr) continue;
    if (load != nullptr || !next->getType()->isVectorTy()) return 0;
    load = next;
  }
  if (load == nullptr) return 0;
  return block.getModule()->getDataLayout().getTypeStoreSize(load->getType()).getFixedValue();
}

const llvm::ConstantInt* constant(const llvm::Value* value) {
  return llvm::dyn_cast<llvm::ConstantInt>(value);
}

}  // namespace

// The factor that keeps a round of a stream within kRoundBytes, where LLVM would choose its own.
std::optional<uint64_t> BodyLowering::stream_factor(const Frame& loop) const {
  if (builder_.GetInsertBlock() != loop.body) return std::nullopt;
  const auto* const low = constant(loop.induction->getIncomingValueForBlock(loop.before));
  const auto operand = [&](unsigned slot) {
    return constant(value(operand_group(module_, loop.op, slot)[0]));
  };
  const auto* const high = operand(operand_slot(ScfFor, "hi"));
  const auto* const step = operand(operand_slot(ScfFor, "step"));
  if (low == nullptr || high == nullptr || step == nullptr) return std::nullopt;
  const uint64_t distance = (high->getValue() - low->getValue()).getZExtValue();
  const uint64_t bytes = bytes_of_only_load(*loop.body);
  if (high->getValue().sle(low->getValue()) || bytes == 0) return std::nullopt;
  const uint64_t rounds = (distance - 1) / step->getZExtValue() + 1;
  if (rounds <= kStreamBytes / bytes) return std::nullopt;
  uint64_t factor = std::max<uint64_t>(kRoundBytes / bytes, 1);
  while (rounds % factor != 0) --factor;
  return factor;
}

void BodyLowering::hint_unrolling(const Frame& loop, llvm::Instruction* branch) {
  llvm::LLVMContext& context = builder_.getContext();
  const auto named = [&](const char* name) { return llvm::MDString::get(context, name); };
  const auto times = [&](uint64_t count) {
    llvm::Metadata* const number =
        llvm::ConstantAsMetadata::get(builder_.getInt32(static_cast<uint32_t>(count)));
    return llvm::MDNode::get(context, {named("llvm.loop.unroll.count"), number});
  };
  llvm::Metadata* hint = nullptr;
  const auto factor = operand_group(module_, loop.op, operand_slot(ScfFor, "factor"));
  if (!factor.empty()) {
    const auto* const count = constant(value(factor[0]));
    if (count != nullptr && count->getZExtValue() <= 1024) hint = times(count->getZExtValue());
  } else if (module_.has_attr(loop.op, attr_slot(ScfFor, "unroll"))) {
    hint = llvm::MDNode::get(context, {named("llvm.loop.unroll.full")});
  } else if (const auto count = stream_factor(loop)) {
    hint = times(*count);
  }
  if (hint == nullptr) return;
  llvm::MDNode* const node = llvm::MDNode::getDistinct(context, {nullptr, hint});
  node->replaceOperandWith(0, node);
  branch->setMetadata(llvm::LLVMContext::MD_loop, node);
}

}  // namespace loom
