// Collectives of subgroups that have several lanes: what each workitem gets, from the values that
// all workitems of its subgroup left in their slots.
#pragma once

#include <functional>

#include "loom/target/llvm/body.h"

namespace loom {

class Subgroups {
 public:
  // A value of the workitem with that number in the workgroup, and where its results go.
  using Load = std::function<llvm::Value*(ValueId value, llvm::Value* flat)>;
  using Store = std::function<void(ValueId value, llvm::Value* from, llvm::Value* flat)>;

  // Workitems [n * lanes, (n + 1) * lanes) are subgroup n; the last one may have fewer.
  Subgroups(const Module& module, uint64_t items, uint64_t lanes, llvm::IRBuilderBase& builder,
            BodyLowering& lowering, Load load, Store store)
      : module_(module),
        items_(items),
        lanes_(lanes),
        builder_(builder),
        lowering_(lowering),
        load_(std::move(load)),
        store_(std::move(store)) {}

  // Some workitems left before: `first` is the first of the subgroup that is still there, and
  // `is_here` says it of any one of the workgroup.
  using IsHere = std::function<llvm::Value*(llvm::Value* flat)>;
  void after_exits(llvm::Value* first, IsHere is_here) {
    first_here_ = first;
    is_here_ = std::move(is_here);
  }

  // What the workitem `flat` gets of the collective.
  void emit(OpId op, llvm::Value* flat);

 private:
  using Step = std::function<llvm::Value*(llvm::Value* other, llvm::Value* lane,
                                          llvm::Value* exists, llvm::Value* so_far)>;
  llvm::Value* over_lanes(llvm::Value* initial, bool reverse, const Step& step);
  llvm::Value* cluster(OpId op, llvm::Value* lane);
  llvm::Value* exists(llvm::Value* flat);
  llvm::Value* member(ValueId value, llvm::Value* flat, llvm::Value* exists);
  llvm::Value* same_bits(llvm::Value* a, llvm::Value* b);
  void combine(OpId op);
  void shuffle(OpId op);
  void vote(OpId op);
  void masks(OpId op);

  const Module& module_;
  const uint64_t items_;
  const uint64_t lanes_;
  llvm::IRBuilderBase& builder_;
  BodyLowering& lowering_;
  Load load_;
  Store store_;
  IsHere is_here_;                     // none where all are there
  llvm::Value* first_here_ = nullptr;  // with is_here_
  llvm::Value* flat_ = nullptr;        // of the workitem
  llvm::Value* lane_ = nullptr;        // in its subgroup
  llvm::Value* first_ = nullptr;       // workitem of its subgroup
};

}  // namespace loom
