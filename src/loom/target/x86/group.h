// One workgroup whose workitems meet, as loops over the workitems between the meetings.
#pragma once

#include <functional>

#include "loom/target/llvm/body.h"
#include "loom/target/llvm/group_plan.h"

namespace loom {

// What the entry around it gives.
class ItemLoops {
 public:
  virtual ~ItemLoops() = default;
  // Emits loops over all workitems, x innermost, around what `body` emits; `flat` is the number of
  // the workitem, x fastest.
  virtual void each_item(const std::function<void(llvm::Value* flat)>& body) = 0;
  // The same for the workitems [begin, end), at least one and at most `most`.
  virtual void each_item_of(llvm::Value* begin, llvm::Value* end, uint64_t most,
                            const std::function<void(llvm::Value* flat)>& body) = 0;
  // Within `body`: the workitem's place along x.
  virtual llvm::Value* along_x() = 0;
  virtual uint64_t most_along_x() const = 0;
  // What follows is computed for that workitem.
  virtual void at_item(llvm::Value* flat) = 0;
};

// Emits the parts at the builder's insertion point, between begin_kernel() and end_kernel() of the
// lowering, of a kernel whose workgroup size is exact. Slots are allocated in `entry`.
void emit_group_parts(const Module& module, const KernelPlan& kernel, llvm::BasicBlock* entry,
                      llvm::IRBuilderBase& builder, BodyLowering& lowering, ItemLoops& loops);

}  // namespace loom
