// Collectives whose scope holds one workitem: the lanes of a subgroup of width 1, and workgroups of
// size 1 with one subgroup. A workitem meets itself there, so a barrier is nothing.
#include <llvm/IR/IRBuilder.h>

#include "loom/base/check.h"
#include "loom/dialect/eval_vector.h"
#include "loom/dialect/op_info.h"
#include "loom/target/llvm/body.h"

namespace loom {

using enum OpKind;

namespace {

bool is_exclusive(const Module& module, OpId op) {
  static_assert(attr_slot(KernelSubgroupScan, "mode") == attr_slot(KernelWorkgroupScan, "mode"));
  return static_cast<ScanMode>(module.attr(op, attr_slot(KernelSubgroupScan, "mode")).bits) ==
         ScanMode::Exclusive;
}

}  // namespace

// The neutral element in the shape of a type.
llvm::Value* BodyLowering::neutral_value(CombiningKind kind, TypeId type) {
  const Type& info = module_.types[type];
  llvm::Constant* const element =
      llvm_constant(builder_.getContext(), neutral_element(kind, info.element));
  const auto lanes = static_lanes(info);
  return lanes ? splat(element, static_cast<unsigned>(*lanes)) : element;
}

void BodyLowering::emit_lone_collective(OpId op) {
  auto& b = builder_;
  const OpKind kind = module_.op(op).kind;
  if (kind == KernelBarrier) return;
  const ValueId result = module_.result(op);
  llvm::Type* const type = component_types(module_.type_of(result))[0];
  llvm::Value* const own = module_.operands(op).empty() ? nullptr : value(module_.operand(op, 0));
  switch (kind) {
    case KernelSubgroupScan:
    case KernelWorkgroupScan: {
      static_assert(attr_slot(KernelSubgroupScan, "kind") ==
                    attr_slot(KernelWorkgroupScan, "kind"));
      const auto combining =
          static_cast<CombiningKind>(module_.attr(op, attr_slot(KernelSubgroupScan, "kind")).bits);
      return bind(result, is_exclusive(module_, op)
                              ? neutral_value(combining, module_.type_of(result))
                              : own);
    }
    case KernelSubgroupShuffle: {
      llvm::Value* const distance = value(module_.operand(op, 1));
      bind(result, own);
      return bind(module_.result(op, 1), b.CreateIsNull(distance));
    }
    case KernelWorkgroupVoteCount:
    case KernelSubgroupVoteBallot:
      return bind(result, b.CreateZExt(own, type));
    case KernelSubgroupActiveMask:
    case KernelSubgroupMatchAny:
      return bind(result, llvm::ConstantInt::get(type, 1));
    case KernelSubgroupMatchAll:
      bind(result, llvm::ConstantInt::get(type, 1));
      return bind(module_.result(op, 1), b.getTrue());
    default:  // what one value gives when it is combined, broadcast or voted alone
      return bind(result, own);
  }
}

}  // namespace loom
