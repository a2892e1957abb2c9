// Integer and address operations.
#pragma once

#include <span>

#include "loom/dialect/eval.h"
#include "loom/target/llvm/llvm_types.h"

namespace loom {

// An operation of the index dialect, or one of the scalar dialect on integers, that computes one
// value from its operands; `from` is the type of its first operand, `to` of its result. Operands
// that are LLVM vectors are computed lane by lane.
llvm::Value* emit_integer_op(llvm::IRBuilderBase& builder, OpKind op, const EvalAttrs& attrs,
                             std::span<llvm::Value* const> operands, ScalarKind from,
                             ScalarKind to);

}  // namespace loom
