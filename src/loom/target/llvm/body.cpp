#include "loom/target/llvm/body.h"

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/MDBuilder.h>
#include <llvm/IR/Module.h>

#include "loom/base/check.h"
#include "loom/dialect/op_info.h"
#include "loom/target/llvm/frame.h"
#include "loom/target/llvm/integer_ops.h"
#include "loom/target/llvm/op_checks.h"
#include "loom/target/llvm/view_layout.h"

namespace loom {

using enum OpKind;

BodyLowering::BodyLowering(const Module& module, const LoweringPlan& plan, llvm::Module& target,
                           llvm::IRBuilderBase& builder, const FloatTarget& floats,
                           const LoweringAids& aids)
    : module_(module),
      plan_(plan),
      aids_(aids),
      target_(target),
      builder_(builder),
      floats_(builder, floats),
      values_(module.value_count()) {}

BodyLowering::~BodyLowering() = default;

void BodyLowering::begin_function(llvm::Function& function, std::string_view name, OpId op) {
  if (aids_.lines == nullptr) return;
  aids_.lines->begin(function, name, op);
  locate(op);
}

void BodyLowering::locate(OpId op) {
  if (aids_.lines != nullptr) builder_.SetCurrentDebugLocation(aids_.lines->at(op));
}

// --- values -------------------------------------------------------------------------------------

llvm::Value* BodyLowering::value(ValueId id) const {
  llvm::Value* const found = values_[id.index()];
  LOOM_CHECK(found != nullptr, "use of a value that is not lowered");
  return found;
}

llvm::Value* BodyLowering::index_constant(int64_t value) const {
  return builder_.getInt64(static_cast<uint64_t>(value));
}

llvm::Value* BodyLowering::extent(Dim dim) {
  if (!dim.is_dynamic()) return index_constant(dim.extent());
  return builder_.CreateZExtOrTrunc(value(dim.value()), builder_.getInt64Ty());
}

// The index on one axis of an index list.
llvm::Value* BodyLowering::place(std::span<const ValueId> operands, std::span<const int64_t> fixed,
                                 unsigned axis, unsigned& next_operand) {
  if (fixed[axis] != kDynamicIndex) return index_constant(fixed[axis]);
  return value(operands[next_operand++]);
}

size_t BodyLowering::component_count(TypeId type) const {
  const Type& info = module_.types[type];
  if (info.kind != TypeKind::View || info.rank() == 0) return 1;
  return view_layout(module_, info) == ViewLayout::Strided ? info.rank() + 1 : info.rank();
}

void BodyLowering::append_types(TypeId type, std::vector<llvm::Type*>& types) const {
  const Type& info = module_.types[type];
  if (info.is_scalar() || info.kind == TypeKind::Vector) {
    types.push_back(llvm_value_type(builder_.getContext(), info));
    return;
  }
  types.push_back(builder_.getPtrTy());
  types.insert(types.end(), component_count(type) - 1, builder_.getInt64Ty());
}

void BodyLowering::append_components(ValueId id, Components& to) const {
  to.push_back(value(id));
  if (component_count(module_.type_of(id)) == 1) return;
  const Components& strides = strides_.at(id.index());
  to.insert(to.end(), strides.begin(), strides.end());
}

BodyLowering::Components BodyLowering::components_of(std::span<const ValueId> ids) const {
  Components all;
  for (const ValueId id : ids) append_components(id, all);
  return all;
}

void BodyLowering::bind(ValueId id, llvm::Value* value) { values_[id.index()] = value; }

void BodyLowering::bind_components(ValueId id, std::span<llvm::Value* const>& from) {
  const size_t count = component_count(module_.type_of(id));
  bind(id, from[0]);
  if (count > 1) {
    const auto strides = from.first(count).subspan(1);
    strides_[id.index()].assign(strides.begin(), strides.end());
  }
  from = from.subspan(count);
}

void BodyLowering::bind_all(std::span<const ValueId> ids, std::span<llvm::Value* const> from) {
  for (const ValueId id : ids) bind_components(id, from);
}

void BodyLowering::bind_argument(ValueId arg, llvm::Value* value) { bind(arg, value); }

std::vector<ValueId> BodyLowering::results_of(OpId op) const {
  std::vector<ValueId> results;
  results.reserve(module_.op(op).result_count);
  for (unsigned i = 0; i < module_.op(op).result_count; ++i) {
    results.push_back(module_.result(op, i));
  }
  return results;
}

// --- control ------------------------------------------------------------------------------------

void BodyLowering::lower_kernel_body(OpId kernel, llvm::BasicBlock* entry, KernelQueries& queries) {
  begin_kernel(kernel, entry, queries);
  run(module_.op_region(kernel, region_slot(KernelDef, "body")));
  end_kernel();
}

void BodyLowering::lower_decided_body(OpId kernel, OpId condition, llvm::BasicBlock* entry,
                                      KernelQueries& queries) {
  decided_ = condition;
  lower_kernel_body(kernel, entry, queries);
  decided_ = OpId();
}

void BodyLowering::begin_kernel(OpId kernel, llvm::BasicBlock* entry, KernelQueries& queries) {
  entry_ = entry;
  queries_ = &queries;
  kernel_ = kernel;
  const RegionId body = module_.op_region(kernel, region_slot(KernelDef, "body"));
  for (const ValueId arg : module_.args(body)) {
    const Type& type = module_.types[module_.type_of(arg)];
    if (component_count(module_.type_of(arg)) > 1) view_strides(type, strides_[arg.index()]);
  }
}

void BodyLowering::end_kernel() {
  locate(kernel_);
  note_roots();
  queries_ = nullptr;
  kernel_ = OpId();
}

void BodyLowering::lower_whole(OpId op) {
  const size_t until = frames_.size();
  frames_.push_back({.op = OpId(), .next = op, .single = true});
  run_frames(until);
}

std::vector<llvm::Value*> BodyLowering::components(ValueId id) const {
  Components all;
  append_components(id, all);
  return all;
}

void BodyLowering::set_components(ValueId id, std::span<llvm::Value* const> values) {
  bind_components(id, values);
}

std::vector<llvm::Type*> BodyLowering::component_types(TypeId type) const {
  std::vector<llvm::Type*> types;
  append_types(type, types);
  return types;
}

llvm::BasicBlock* BodyLowering::new_block() {
  return llvm::BasicBlock::Create(builder_.getContext(), "", entry_->getParent());
}

void BodyLowering::run(RegionId region) {
  const size_t until = frames_.size();
  frames_.push_back({.op = OpId(), .next = module_.region(region).first});
  run_frames(until);
}

void BodyLowering::run_frames(size_t until) {
  while (frames_.size() > until) {
    Frame& frame = frames_.back();
    const OpId op = frame.next;
    if (!op.valid()) {
      if (frame.single) {
        frames_.pop_back();
      } else {
        end_region(op);  // a terminator without values may be left out
      }
      continue;
    }
    frame.next = frame.single ? OpId() : module_.op(op).next;
    switch (module_.op(op).kind) {
      case ScfYield:
      case FuncReturn:
      case KernelReturn:
        end_region(op);
        break;
      case ScfCondition:
        end_condition(op);
        break;
      default:
        lower_op(op);
    }
  }
}

void BodyLowering::lower_op(OpId op) {
  locate(op);
  if (decided_.valid() && op == decided_) return bind(module_.result(op), builder_.getTrue());
  switch (module_.op(op).kind) {
    case ScfFor:
      return open_for(op);
    case ScfIf:
      return open_if(op);
    case ScfSelect:
      return emit_select(op);
    case ScfSwitch:
      return open_switch(op);
    case ScfLookup:
      return emit_lookup(op);
    case ScfWhile:
      return open_while(op);
    case KernelExit:
      return open_exit(op);
    case FuncCall:
      return is_inlined_call(module_, op) ? open_call(op) : emit_call(op);
    case BufferAlloca:
    case BufferView:
    case BufferAssumeNoalias:
    case BufferAssumeAlignment:
    case BufferAssumeMemorySpace:
    case BufferAssumeSameRoot:
    case BufferPack:
    case BufferLength:
    case ViewSubview:
    case ViewRefine:
    case ViewLoad:
    case ViewStore:
    case ViewPrefetch:
      return emit_memory_op(op);
    case ViewAtomicReduce:
    case ViewAtomicRmw:
    case ViewAtomicCmpxchg:
    case ViewAtomicLoad:
    case ViewAtomicStore:
      return emit_view_atomic(op);
    case KernelAssert:
    case SanitizerAssertValue:
    case SanitizerAssertOp:
    case SanitizerAssertAccess:
    case SanitizerAssertLayout:
      return emit_check(op);
    case KernelAsyncCopy:
    case KernelAsyncCopyMask:
    case KernelAsyncGather:
    case KernelAsyncGatherMask:
    case KernelAsyncGroup:
    case KernelAsyncWait:
      return emit_async(op);
    case EncodingIsa:
      return bind(module_.result(op), emit_isa(op));
    case TargetSubgroupSize:
      return bind(module_.result(op), queries_ != nullptr
                                          ? queries_->query(KernelSubgroupSize, Axis::X)
                                          : index_constant(1));
    case EncodingLayoutDense:
    case EncodingLayoutStrided:
    case EncodingDefine:
      return;  // who takes the encoding reads it
    default:
      return emit_scalar_op(op);
  }
}

void BodyLowering::end_region(OpId terminator) {
  Components yielded;
  if (terminator.valid()) {
    locate(terminator);
    yielded = components_of(module_.operands(terminator));
  } else if (frames_.back().op.valid()) {
    locate(frames_.back().op);
  }
  switch (frames_.back().kind) {
    case Frame::Kind::For:
      locate(frames_.back().op);  // the test for another round
      return close_for(yielded);
    case Frame::Kind::If:
      return close_if(yielded);
    case Frame::Kind::Switch:
      return close_switch(yielded);
    case Frame::Kind::While:
      return close_while(yielded);
    case Frame::Kind::Exit:
      return close_exit();
    case Frame::Kind::Call: {
      const OpId call = frames_.back().op;
      frames_.pop_back();
      if (aids_.lines != nullptr) aids_.lines->leave_call();
      return bind_all(results_of(call), yielded);
    }
    case Frame::Kind::Body:
      frames_.pop_back();
      if (queries_ == nullptr) emit_return(yielded);
  }
}

void BodyLowering::open_for(OpId op) {
  const ValueId low = operand_group(module_, op, operand_slot(ScfFor, "lo"))[0];
  const ValueId high = operand_group(module_, op, operand_slot(ScfFor, "hi"))[0];
  const bool is_offset = module_.types.is(module_.type_of(low), ScalarKind::Offset);
  note_pipeline(op);
  Frame frame{.kind = Frame::Kind::For, .op = op};
  frame.initial = components_of(operand_group(module_, op, operand_slot(ScfFor, "init")));
  frame.before = builder_.GetInsertBlock();
  frame.body = new_block();
  frame.exit = new_block();
  const auto below = is_offset ? llvm::CmpInst::ICMP_ULT : llvm::CmpInst::ICMP_SLT;
  builder_.CreateCondBr(builder_.CreateICmp(below, value(low), value(high)), frame.body,
                        frame.exit);
  builder_.SetInsertPoint(frame.body);
  frame.induction = builder_.CreatePHI(builder_.getInt64Ty(), 2);
  frame.induction->addIncoming(value(low), frame.before);
  for (llvm::Value* const initial : frame.initial) {
    llvm::PHINode* const phi = builder_.CreatePHI(initial->getType(), 2);
    phi->addIncoming(initial, frame.before);
    frame.carried.push_back(phi);
  }
  const RegionId body = module_.op_region(op, region_slot(ScfFor, "body"));
  const auto args = module_.args(body);
  bind(args[0], frame.induction);
  bind_all(args.subspan(1), Components(frame.carried.begin(), frame.carried.end()));
  frame.next = module_.region(body).first;
  frames_.push_back(std::move(frame));
}

// The test for another round stays inside the domain: with step 1 the next value is at most the
// bound, and otherwise the distance that is left is compared with the step.
void BodyLowering::close_for(const Components& yielded) {
  const Frame frame = std::move(frames_.back());
  frames_.pop_back();
  auto& b = builder_;
  const ValueId bound = operand_group(module_, frame.op, operand_slot(ScfFor, "hi"))[0];
  llvm::Value* const high = value(bound);
  llvm::Value* const step =
      value(operand_group(module_, frame.op, operand_slot(ScfFor, "step"))[0]);
  const bool is_offset = module_.types.is(module_.type_of(bound), ScalarKind::Offset);
  const auto* const constant = llvm::dyn_cast<llvm::ConstantInt>(step);
  llvm::Value* next = nullptr;
  llvm::Value* again = nullptr;
  if (constant != nullptr && constant->isOne()) {
    next = b.CreateAdd(frame.induction, step, "", is_offset, !is_offset);
    again = is_offset ? b.CreateICmpULT(next, high) : b.CreateICmpSLT(next, high);
  } else {
    again = b.CreateICmpUGT(b.CreateSub(high, frame.induction), step);
    next = b.CreateAdd(frame.induction, step);
  }
  llvm::BasicBlock* const latch = b.GetInsertBlock();
  hint_unrolling(frame, b.CreateCondBr(again, frame.body, frame.exit));
  frame.induction->addIncoming(next, latch);
  b.SetInsertPoint(frame.exit);
  Components results;
  for (size_t i = 0; i < frame.carried.size(); ++i) {
    frame.carried[i]->addIncoming(yielded[i], latch);
    llvm::PHINode* const result = b.CreatePHI(yielded[i]->getType(), 2);
    result->addIncoming(frame.initial[i], frame.before);
    result->addIncoming(yielded[i], latch);
    results.push_back(result);
  }
  bind_all(results_of(frame.op), results);
}

void BodyLowering::open_if(OpId op) {
  const RegionId first = module_.op_region(op, region_slot(ScfIf, "then"));
  const RegionId second = module_.op_region(op, region_slot(ScfIf, "else"));
  Frame frame{.kind = Frame::Kind::If, .op = op, .next = module_.region(first).first};
  llvm::BasicBlock* const then_block = new_block();
  frame.exit = new_block();
  frame.before = builder_.GetInsertBlock();
  frame.other = module_.region(second).has_body ? new_block() : frame.exit;
  builder_.CreateCondBr(value(module_.operand(op, 0)), then_block, frame.other);
  builder_.SetInsertPoint(then_block);
  frames_.push_back(std::move(frame));
}

void BodyLowering::close_if(const Components& yielded) {
  auto& b = builder_;
  Frame& frame = frames_.back();
  llvm::BasicBlock* const end = b.GetInsertBlock();
  b.CreateBr(frame.exit);
  if (!frame.in_else && frame.other != frame.exit) {
    frame.in_else = true;
    frame.before = end;
    frame.initial = yielded;
    const RegionId second = module_.op_region(frame.op, region_slot(ScfIf, "else"));
    frame.next = module_.region(second).first;
    b.SetInsertPoint(frame.other);
    return;
  }
  b.SetInsertPoint(frame.exit);
  Components results;
  for (size_t i = 0; i < yielded.size(); ++i) {
    llvm::PHINode* const result = b.CreatePHI(yielded[i]->getType(), 2);
    result->addIncoming(frame.initial[i], frame.before);
    result->addIncoming(yielded[i], end);
    results.push_back(result);
  }
  const OpId op = frame.op;
  frames_.pop_back();
  bind_all(results_of(op), results);
}

void BodyLowering::emit_select(OpId op) {
  llvm::Value* const condition = value(module_.operand(op, 0));
  Components first;
  Components second;
  append_components(module_.operand(op, 1), first);
  append_components(module_.operand(op, 2), second);
  Components chosen;
  for (size_t i = 0; i < first.size(); ++i) {
    chosen.push_back(builder_.CreateSelect(condition, first[i], second[i]));
  }
  bind_all(results_of(op), chosen);
}

void BodyLowering::emit_scalar_op(OpId op) {
  const OpInfo& info = op_info(module_.op(op).kind);
  const OpKind kind = info.kind;
  if (kind == IndexAssume || kind == ScalarAssume) {
    static_assert(attr_slot(IndexAssume, "predicates") == attr_slot(ScalarAssume, "predicates"));
    assume(op, module_.attr(op, attr_slot(IndexAssume, "predicates")).predicates);
    return bind_all(results_of(op), components_of(module_.operands(op)));
  }
  if (info.dialect == "vector") return emit_vector_op(op);
  if (info.has(trait::Convergent)) return emit_lone_collective(op);
  const ValueId result = module_.result(op);
  const ScalarKind to = module_.types[module_.type_of(result)].element;
  if (kind == ScalarPoison) {
    return bind(result, llvm::Constant::getNullValue(llvm_type(builder_.getContext(), to)));
  }
  if (kind == IndexConstant || kind == ScalarConstant || kind == ConfigGet) {
    const unsigned slot = kind == IndexConstant ? attr_slot(IndexConstant, "value")
                                                : attr_slot(ScalarConstant, "value");
    const auto exact =
        kind == ConfigGet ? config_value(module_, op) : from_literal(module_.attr(op, slot), to);
    LOOM_CHECK(exact.has_value(), "a literal that its type does not hold");
    return bind(result, llvm_constant(builder_.getContext(), *exact));
  }
  const EvalAttrs attrs = eval_attrs(module_, op);
  if (info.has(trait::KernelQuery)) {
    LOOM_CHECK(queries_ != nullptr, "a kernel query outside a kernel");
    return bind(result, queries_->query(kind, static_cast<Axis>(attrs.choice)));
  }
  emit_computation(op, kind);
}

// An operation that computes one value from its operands: itself, or in each lane `scalar_kind`.
void BodyLowering::emit_computation(OpId op, OpKind scalar_kind) {
  const ValueId result = module_.result(op);
  const EvalAttrs attrs = eval_attrs(module_, op);
  const Components operands = components_of(module_.operands(op));
  const ScalarKind from = module_.types[module_.type_of(module_.operand(op, 0))].element;
  const ScalarKind to = module_.types[module_.type_of(result)].element;
  const bool is_float_op = (is_float(from) || is_float(to)) && scalar_kind != ScalarBitcast;
  bind(result, is_float_op ? floats_.emit(scalar_kind, attrs, operands, from, to)
                           : emit_integer_op(builder_, scalar_kind, attrs, operands, from, to));
}

}  // namespace loom
