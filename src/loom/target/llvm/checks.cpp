// Checks at run time: assertions, and what sanitizers ask for.
#include <fmt/format.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/MDBuilder.h>
#include <llvm/IR/Module.h>

#include <filesystem>

#include "loom/base/check.h"
#include "loom/dialect/op_info.h"
#include "loom/ir/ir_text.h"
#include "loom/target/llvm/body.h"

namespace loom {

using enum OpKind;

namespace {

std::string stated(const Module& module, const Predicate& predicate) {
  std::string text(predicate_info(predicate.kind).text);
  for (unsigned i = 0; i < predicate.arity(); ++i) {
    const PredicateArg& arg = predicate.args[i];
    text += i == 0 ? "(" : ", ";
    text += arg.is_value() ? value_name_text(module, arg.value) : fmt::to_string(arg.literal);
  }
  return text + ")";
}

}  // namespace

// Goes on where the condition holds, and leaves the kernel where it does not. Where nobody takes
// the report, and in functions that cannot leave the kernel, it traps.
void BodyLowering::check(OpId op, llvm::Value* holds, const std::string& detail) {
  auto& b = builder_;
  llvm::LLVMContext& context = b.getContext();
  llvm::BasicBlock* const failing = new_block();
  llvm::BasicBlock* const going = new_block();
  b.CreateCondBr(holds, going, failing, llvm::MDBuilder(context).createBranchWeights(1 << 20, 1));

  b.SetInsertPoint(failing);
  llvm::BasicBlock* const telling = new_block();
  llvm::BasicBlock* const trapping = new_block();
  llvm::FunctionCallee callee = target_.getOrInsertFunction(
      "loom_check_failed",
      llvm::FunctionType::get(b.getVoidTy(), {b.getPtrTy(), b.getPtrTy()}, false));
  auto* const function = llvm::cast<llvm::Function>(callee.getCallee());
  function->setLinkage(llvm::Function::ExternalWeakLinkage);
  b.CreateCondBr(b.CreateIsNotNull(function), telling, trapping);

  b.SetInsertPoint(telling);
  std::string text = detail;
  if (kernel_.valid()) text += fmt::format(" in '@{}'", symbol_text(module_, kernel_));
  if (const Location at = module_.location(op); at.valid()) {
    // Code names no folder, so that it is the same wherever its source lies.
    const std::filesystem::path path(module_.files().file(at.file).path);
    text += fmt::format(" at {}:{}:{}", path.filename().string(), at.line, at.column);
  }
  llvm::Value* const args =
      queries_ != nullptr ? queries_->arguments() : llvm::ConstantPointerNull::get(b.getPtrTy());
  b.CreateCall(callee, {args, b.CreateGlobalString(text)});
  b.CreateBr(queries_ != nullptr ? queries_->end_block() : trapping);

  b.SetInsertPoint(trapping);
  b.CreateIntrinsic(llvm::Intrinsic::trap, {}, {});
  b.CreateUnreachable();
  b.SetInsertPoint(going);
}

// Whether a predicate holds, all numbers taken as 64 bits.
llvm::Value* BodyLowering::holds(const Predicate& predicate) {
  auto& b = builder_;
  const ValueId id = predicate.args[0].value;
  const ScalarKind kind = module_.types[module_.type_of(id)].element;
  if (is_float(kind)) {
    llvm::Value* const operands[] = {value(id)};
    const auto is = [&](OpKind what) {
      return floats_.emit(what, {}, operands, kind, ScalarKind::I1);
    };
    if (predicate.kind == PredicateKind::NotNan) return b.CreateNot(is(ScalarIsNanF));
    if (predicate.kind == PredicateKind::NotInf) return b.CreateNot(is(ScalarIsInfF));
    return is(ScalarIsFiniteF);
  }
  const auto number = [&](unsigned i) -> llvm::Value* {
    const PredicateArg& arg = predicate.args[i];
    if (!arg.is_value()) return index_constant(arg.literal);
    llvm::Value* const given = value(arg.value);
    return given->getType()->isIntegerTy(1) ? b.CreateZExt(given, b.getInt64Ty())
                                            : b.CreateSExt(given, b.getInt64Ty());
  };
  llvm::Value* const x = number(0);
  using enum PredicateKind;
  switch (predicate.kind) {
    case Eq:
      return b.CreateICmpEQ(x, number(1));
    case Ne:
      return b.CreateICmpNE(x, number(1));
    case Lt:
      return b.CreateICmpSLT(x, number(1));
    case Le:
    case Max:
      return b.CreateICmpSLE(x, number(1));
    case Gt:
      return b.CreateICmpSGT(x, number(1));
    case Ge:
    case Min:
      return b.CreateICmpSGE(x, number(1));
    case Range:
      return b.CreateAnd(b.CreateICmpSGE(x, number(1)), b.CreateICmpSLE(x, number(2)));
    case Pow2: {
      llvm::Value* const below = b.CreateSub(x, index_constant(1));
      return b.CreateAnd(b.CreateICmpSGT(x, index_constant(0)),
                         b.CreateIsNull(b.CreateAnd(x, below)));
    }
    default:
      break;
  }
  LOOM_CHECK(predicate.kind == Mul, "a predicate that nothing checks");
  // Everything is a multiple of -1, whose remainder the processor cannot always take.
  llvm::Value* const factor = number(1);
  llvm::Value* const is_zero = b.CreateIsNull(factor);
  llvm::Value* const easy = b.CreateOr(is_zero, b.CreateICmpEQ(factor, index_constant(-1)));
  llvm::Value* const divisor = b.CreateSelect(easy, index_constant(1), factor);
  return b.CreateSelect(is_zero, b.CreateIsNull(x), b.CreateIsNull(b.CreateSRem(x, divisor)));
}

// A window of `static_extents` elements from the index on.
void BodyLowering::emit_access_check(OpId op) {
  auto& b = builder_;
  const ValueId view = operand_group(module_, op, operand_slot(SanitizerAssertAccess, "w"))[0];
  const auto indices = operand_group(module_, op, operand_slot(SanitizerAssertAccess, "index"));
  const auto fixed = module_.attr(op, attr_slot(SanitizerAssertAccess, "static_index")).ints;
  const auto sizes = module_.attr(op, attr_slot(SanitizerAssertAccess, "static_extents")).ints;
  const Type& type = module_.types[module_.type_of(view)];
  unsigned next_operand = 0;
  for (unsigned axis = 0; axis < fixed.size(); ++axis) {
    llvm::Value* const begin = place(indices, fixed, axis, next_operand);
    llvm::Value* const room = extent(type.dims[axis]);
    llvm::Value* const size = index_constant(axis < sizes.size() ? sizes[axis] : 1);
    llvm::Value* const fits =
        b.CreateAnd(b.CreateICmpSLE(size, room), b.CreateICmpSLE(begin, b.CreateSub(room, size)));
    check(op, b.CreateAnd(b.CreateICmpSGE(begin, index_constant(0)), fits),
          fmt::format("the window of {} is outside of axis {}", value_name_text(module_, view),
                      axis));
  }
}

void BodyLowering::emit_layout_check(OpId op) {
  auto& b = builder_;
  const ValueId view = module_.operand(op, 0);
  const Type& found = module_.types[module_.type_of(view)];
  const Type& wanted =
      module_.types[module_.attr(op, attr_slot(SanitizerAssertLayout, "layout")).type()];
  llvm::Value* same = b.getInt1(found.rank() == wanted.rank());
  Components strides;
  if (found.rank() == wanted.rank() && wanted.rank() != 0) view_strides(wanted, strides);
  for (size_t axis = 0; axis < found.rank() && found.rank() == wanted.rank(); ++axis) {
    llvm::Value* const step = axis < strides.size() ? strides[axis] : index_constant(1);
    same = b.CreateAnd(same, b.CreateICmpEQ(stride(view, axis), step));
    same = b.CreateAnd(same, b.CreateICmpEQ(extent(found.dims[axis]), extent(wanted.dims[axis])));
  }
  check(op, same, fmt::format("{} has another layout", value_name_text(module_, view)));
}

void BodyLowering::emit_check(OpId op) {
  switch (module_.op(op).kind) {
    case KernelAssert: {
      const AttrId message = module_.attr_ids(op)[attr_slot(KernelAssert, "message")];
      return check(op, value(module_.operand(op, 0)),
                   message.valid()
                       ? std::string(module_.strings.text(module_.attrs[message].string()))
                       : value_name_text(module_, module_.operand(op, 0)) + " is false");
    }
    case SanitizerAssertAccess:
      return emit_access_check(op);
    case SanitizerAssertLayout:
      return emit_layout_check(op);
    default:
      break;
  }
  static_assert(attr_slot(SanitizerAssertValue, "predicates") ==
                attr_slot(SanitizerAssertOp, "predicates"));
  for (const Predicate& predicate :
       module_.attr(op, attr_slot(SanitizerAssertValue, "predicates")).predicates) {
    check(op, holds(predicate), stated(module_, predicate));
  }
  if (module_.op(op).result_count != 0) {
    bind_all(results_of(op), components_of(module_.operands(op)));
  }
}

}  // namespace loom
