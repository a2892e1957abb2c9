#include "loom/target/llvm/streaming.h"

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Module.h>
#include <llvm/Transforms/Utils/BasicBlockUtils.h>

#include <algorithm>
#include <bit>
#include <vector>

namespace loom {
namespace {

constexpr const char* kGroupName = "loom.streaming";

bool is_in(const llvm::MDNode* groups, const llvm::MDNode* group) {
  return groups == group ||
         (groups != nullptr && std::ranges::any_of(groups->operands(), [&](const auto& one) {
            return one.get() == group;
          }));
}

void set_streamed(llvm::Instruction& access) {
  llvm::LLVMContext& context = access.getContext();
  llvm::Metadata* const one =
      llvm::ConstantAsMetadata::get(llvm::ConstantInt::get(llvm::Type::getInt32Ty(context), 1));
  access.setMetadata(llvm::LLVMContext::MD_nontemporal, llvm::MDNode::get(context, one));
}

// The alignment that streaming of that type needs; 0 where it cannot be.
uint64_t wanted_alignment(const llvm::Type* type, const llvm::DataLayout& layout, unsigned widest) {
  if (!type->isVectorTy()) return 0;
  const uint64_t bytes = layout.getTypeStoreSize(const_cast<llvm::Type*>(type)).getFixedValue();
  if (bytes < 16 || !std::has_single_bit(bytes)) return 0;
  return std::min<uint64_t>(bytes, widest);
}

// Streams the store where its address is aligned.
void stream_if_aligned(llvm::StoreInst& store, uint64_t alignment) {
  llvm::IRBuilder<> builder(&store);
  llvm::Value* const address =
      builder.CreatePtrToInt(store.getPointerOperand(), builder.getInt64Ty());
  llvm::Value* const aligned = builder.CreateIsNull(builder.CreateAnd(address, alignment - 1));
  llvm::Instruction* then_end = nullptr;
  llvm::Instruction* else_end = nullptr;
  llvm::SplitBlockAndInsertIfThenElse(aligned, &store, &then_end, &else_end);
  llvm::Instruction* const streamed = store.clone();
  streamed->insertBefore(then_end);
  llvm::cast<llvm::StoreInst>(streamed)->setAlignment(llvm::Align(alignment));
  set_streamed(*streamed);
  store.moveBefore(else_end);
}

}  // namespace

llvm::MDNode* streaming_group(llvm::Module& module) {
  llvm::NamedMDNode* const named = module.getOrInsertNamedMetadata(kGroupName);
  if (named->getNumOperands() == 0) {
    named->addOperand(llvm::MDNode::getDistinct(module.getContext(), {}));
  }
  return named->getOperand(0);
}

bool stream_accesses(llvm::Module& module, unsigned widest) {
  llvm::NamedMDNode* const named = module.getNamedMetadata(kGroupName);
  if (named == nullptr) return false;
  const llvm::MDNode* const group = named->getOperand(0);
  const llvm::DataLayout& layout = module.getDataLayout();
  bool streams = false;
  for (llvm::Function& function : module) {
    std::vector<std::pair<llvm::StoreInst*, uint64_t>> unknown;
    for (llvm::Instruction& one : llvm::instructions(function)) {
      if (!is_in(one.getMetadata(llvm::LLVMContext::MD_access_group), group)) continue;
      auto* const store = llvm::dyn_cast<llvm::StoreInst>(&one);
      auto* const load = llvm::dyn_cast<llvm::LoadInst>(&one);
      if (store == nullptr && load == nullptr) continue;
      if (store != nullptr ? !store->isSimple() : !load->isSimple()) continue;
      const llvm::Type* const type =
          store != nullptr ? store->getValueOperand()->getType() : load->getType();
      const uint64_t wanted = wanted_alignment(type, layout, widest);
      if (wanted == 0) continue;
      const uint64_t known = (store != nullptr ? store->getAlign() : load->getAlign()).value();
      streams = streams || store != nullptr;
      if (known >= wanted) {
        set_streamed(one);
      } else if (store != nullptr) {
        unknown.emplace_back(store, wanted);
      }
    }
    for (const auto& [store, wanted] : unknown) stream_if_aligned(*store, wanted);
  }
  return streams;
}

}  // namespace loom
