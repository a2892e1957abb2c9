#include "loom/target/x86/entry.h"

#include <fmt/format.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/IntrinsicsX86.h>
#include <llvm/IR/Module.h>

#include <array>
#include <optional>

#include "loom/base/check.h"
#include "loom/dialect/op_info.h"
#include "loom/ir/walk.h"
#include "loom/target/x86/group.h"
#include "loom/target/x86/kernel_abi.h"

namespace loom {
namespace {

using enum OpKind;

constexpr uint64_t kFlushBits = 0x8040;  // MXCSR: flush to zero, denormals are zero

// A counted loop with at least one round; the caller guards the first one.
struct Loop {
  llvm::BasicBlock* body;
  llvm::PHINode* counter;
  llvm::Value* end;
};

// Says that the rounds of the loop between `body` and `latch` touch nothing that another round
// writes: between two barriers, workitems that did would be in a race.
void mark_apart(llvm::BasicBlock& body, llvm::BranchInst& latch, uint64_t rounds) {
  llvm::LLVMContext& context = latch.getContext();
  llvm::MDNode* const group = llvm::MDNode::getDistinct(context, {});
  for (llvm::BasicBlock* block = &body; block != nullptr; block = block->getNextNode()) {
    for (llvm::Instruction& one : *block) {
      if (!one.mayReadOrWriteMemory() || one.isAtomic()) continue;
      auto* const call = llvm::dyn_cast<llvm::CallInst>(&one);
      if (call != nullptr && !llvm::isa<llvm::IntrinsicInst>(call)) continue;
      llvm::MDNode* const others = one.getMetadata(llvm::LLVMContext::MD_access_group);
      llvm::MDNode* groups = group;
      if (others != nullptr) {
        llvm::SmallVector<llvm::Metadata*, 3> all(others->op_begin(), others->op_end());
        if (all.empty()) all.push_back(others);
        all.push_back(group);
        groups = llvm::MDNode::get(context, all);
      }
      one.setMetadata(llvm::LLVMContext::MD_access_group, groups);
    }
  }
  const auto property = [&](std::string_view name, llvm::Metadata* value = nullptr) {
    llvm::SmallVector<llvm::Metadata*, 2> parts = {
        llvm::MDString::get(context, {name.data(), name.size()})};
    if (value != nullptr) parts.push_back(value);
    return llvm::MDNode::get(context, parts);
  };
  llvm::SmallVector<llvm::Metadata*, 4> properties = {
      nullptr, property("llvm.loop.parallel_accesses", group)};
  // Otherwise LLVM unrolls short loops before it looks for vectors, and makes some of the loops
  // around. Its own vectors may be unrolled.
  constexpr uint64_t kShort = 64;
  if (rounds <= kShort) {
    properties.push_back(property("llvm.loop.unroll.disable"));
    properties.push_back(
        property("llvm.loop.vectorize.followup_all", property("llvm.loop.mustprogress")));
  }
  llvm::MDNode* const id = llvm::MDNode::getDistinct(context, properties);
  id->replaceOperandWith(0, id);
  latch.setMetadata(llvm::LLVMContext::MD_loop, id);
}

class Entry : public KernelQueries, public ItemLoops {
 public:
  Entry(const Module& module, const KernelPlan& plan, llvm::Module& target,
        llvm::IRBuilderBase& builder, BodyLowering& lowering)
      : module_(module), plan_(plan), target_(target), builder_(builder), lowering_(lowering) {}

  void emit(const std::string& name, DenormalMode denormals);
  llvm::Value* query(OpKind op, Axis axis) override;
  llvm::BasicBlock* exit_block() override { return item_end_; }
  uint64_t private_copies() const override { return plan_.group ? *plan_.items() : 1; }
  llvm::Value* private_copy() override { return flat_; }
  llvm::Value* arguments() override { return function_->getArg(0); }
  llvm::BasicBlock* end_block() override { return done_; }
  void each_item(const std::function<void(llvm::Value* flat)>& body) override;
  llvm::Value* along_x() override { return item_[0]; }
  void each_item_of(llvm::Value* begin, llvm::Value* end, uint64_t most,
                    const std::function<void(llvm::Value* flat)>& body) override;
  void at_item(llvm::Value* flat) override;
  uint64_t most_along_x() const override { return plan_.size[0].value_or(1) - 1; }

 private:
  void start(const std::string& name);
  void find_queries();
  void bind_arguments();
  void emit_groups();
  void emit_rows();
  void emit_group();
  void emit_guarded_group();
  llvm::Value* set_flush();
  Loop open_loop(llvm::Value* begin, llvm::Value* end);
  llvm::BranchInst* close_loop(const Loop& loop);
  void guard(llvm::Value* condition, llvm::BasicBlock* otherwise);
  llvm::Value* load_shape(unsigned field);
  llvm::Value* count(unsigned axis);
  llvm::Value* size(unsigned axis);
  llvm::Value* volume();
  llvm::BasicBlock* block() {
    return llvm::BasicBlock::Create(builder_.getContext(), "", function_);
  }

  const Module& module_;
  const KernelPlan& plan_;
  llvm::Module& target_;
  llvm::IRBuilderBase& builder_;
  BodyLowering& lowering_;
  llvm::Function* function_ = nullptr;
  llvm::BasicBlock* entry_ = nullptr;
  bool uses_group_[3] = {};
  std::array<llvm::Value*, 6> shape_{};
  std::array<llvm::Value*, 3> group_{};
  std::array<llvm::Value*, 3> item_{};
  llvm::Value* flat_ = nullptr;  // the workitem's number in its workgroup
  llvm::BasicBlock* item_end_ = nullptr;
  llvm::BasicBlock* done_ = nullptr;  // behind all workgroups
};

void Entry::start(const std::string& name) {
  llvm::LLVMContext& context = builder_.getContext();
  llvm::Type* const word = builder_.getInt64Ty();
  llvm::Type* const pointer = builder_.getPtrTy();
  function_ = llvm::Function::Create(
      llvm::FunctionType::get(builder_.getVoidTy(), {pointer, pointer, word, word}, false),
      llvm::Function::ExternalLinkage, name, target_);
  function_->setDoesNotThrow();
  for (unsigned i = 0; i < 2; ++i) {
    function_->addParamAttr(i, llvm::Attribute::NoAlias);
    function_->addParamAttr(i, llvm::Attribute::NoCapture);
    function_->addParamAttr(i, llvm::Attribute::ReadOnly);
  }
  entry_ = llvm::BasicBlock::Create(context, "", function_);
  builder_.SetInsertPoint(entry_);
  lowering_.begin_function(*function_, symbol_text(module_, plan_.kernel), plan_.kernel);
  constexpr std::array<const char*, 3> kAxes = {"x", "y", "z"};
  for (size_t axis = 0; axis < kAxes.size(); ++axis) {
    if (plan_.size[axis]) {
      lowering_.note_fact(plan_.kernel, "workgroup size",
                          fmt::format("{} = {}", kAxes[axis], *plan_.size[axis]));
    } else {
      lowering_.note_missing(plan_.kernel, "workgroup size", kAxes[axis],
                             "the number of workitems is read at each launch");
    }
  }
}

// Which workgroup coordinates the body reads, functions that are inlined into it included.
void Entry::find_queries() {
  std::vector<OpId> roots = {plan_.kernel};
  std::vector<bool> seen(module_.op_count());
  while (!roots.empty()) {
    const OpId root = roots.back();
    roots.pop_back();
    for_each_nested(module_, root, [&](OpId op) {
      const OpKind kind = module_.op(op).kind;
      if (kind == KernelWorkgroupId || kind == KernelWorkitemDispatchId) {
        static_assert(attr_slot(KernelWorkgroupId, "axis") ==
                      attr_slot(KernelWorkitemDispatchId, "axis"));
        uses_group_[module_.attr(op, attr_slot(KernelWorkgroupId, "axis")).bits] = true;
      }
      if (kind != FuncCall || !is_inlined_call(module_, op)) return;
      const OpId callee = module_.symbol(symbol_ref(module_, op, attr_slot(FuncCall, "callee")));
      if (seen[callee.index()]) return;
      seen[callee.index()] = true;
      roots.push_back(callee);
    });
  }
}

void Entry::bind_arguments() {
  const RegionId body = module_.op_region(plan_.kernel, region_slot(KernelDef, "body"));
  llvm::Value* const slots = function_->getArg(0);
  const auto args = module_.args(body);
  for (unsigned i = 0; i < args.size(); ++i) {
    const Type& type = module_.types[module_.type_of(args[i])];
    llvm::Value* const address =
        builder_.CreateConstInBoundsGEP1_64(builder_.getInt64Ty(), slots, i);
    llvm::Type* const wanted =
        type.is_scalar() ? llvm_type(builder_.getContext(), type.element) : builder_.getPtrTy();
    llvm::Value* value = nullptr;
    if (wanted->isIntegerTy() && !wanted->isIntegerTy(64)) {
      value = builder_.CreateTrunc(builder_.CreateLoad(builder_.getInt64Ty(), address), wanted);
    } else {
      value = builder_.CreateLoad(wanted, address);  // little endian: the low bytes come first
    }
    lowering_.bind_argument(args[i], value);
  }
  if (constexpr unsigned kAlignments = attr_slot(KernelDef, "alignments");
      module_.has_attr(plan_.kernel, kAlignments)) {
    const auto alignments = module_.attr(plan_.kernel, kAlignments).ints;
    for (size_t i = 0; i < alignments.size(); ++i) {
      if (module_.types[module_.type_of(args[i])].is_scalar()) continue;
      lowering_.assume_alignment(plan_.kernel, args[i], alignments[i]);
    }
  }
  lowering_.assume(plan_.kernel, where_predicates(module_, plan_.kernel));
  constexpr unsigned kReadonly = attr_slot(KernelDef, "readonly");
  if (!module_.has_attr(plan_.kernel, kReadonly)) return;
  for (const int64_t place : module_.attr(plan_.kernel, kReadonly).ints) {
    lowering_.promise_readonly(args[static_cast<size_t>(place)]);
  }
}

llvm::Value* Entry::load_shape(unsigned field) {
  if (shape_[field] != nullptr) return shape_[field];
  llvm::IRBuilderBase::InsertPointGuard restore(builder_);
  builder_.SetInsertPoint(entry_->getTerminator());
  llvm::Value* const address =
      builder_.CreateConstInBoundsGEP1_64(builder_.getInt32Ty(), function_->getArg(1), field);
  shape_[field] = builder_.CreateZExt(builder_.CreateLoad(builder_.getInt32Ty(), address),
                                      builder_.getInt64Ty());
  return shape_[field];
}

llvm::Value* Entry::count(unsigned axis) {
  return load_shape(offsetof(LoomDispatchShape, count) / sizeof(uint32_t) + axis);
}

llvm::Value* Entry::size(unsigned axis) {
  if (plan_.size[axis]) return builder_.getInt64(*plan_.size[axis]);
  return load_shape(offsetof(LoomDispatchShape, size) / sizeof(uint32_t) + axis);
}

llvm::Value* Entry::volume() {
  return builder_.CreateMul(builder_.CreateMul(size(0), size(1)), size(2));
}

// Subgroups have one lane unless the kernel's target record says otherwise.
llvm::Value* Entry::query(OpKind op, Axis which) {
  auto& b = builder_;
  const auto axis = static_cast<unsigned>(which);
  switch (op) {
    case KernelWorkitemId:
      return item_[axis];
    case KernelWorkgroupId:
      return group_[axis];
    case KernelWorkgroupSize:
      return size(axis);
    case KernelWorkgroupCount:
      return count(axis);
    case KernelWorkitemDispatchId:
      return b.CreateAdd(b.CreateMul(group_[axis], size(axis), "", true, true), item_[axis], "",
                         true, true);
    case KernelSubgroupId:
      return b.CreateUDiv(flat_, b.getInt64(plan_.subgroup_lanes));
    case KernelSubgroupCount: {
      llvm::Value* const most = b.getInt64(plan_.subgroup_lanes - 1);
      return b.CreateUDiv(b.CreateAdd(volume(), most), b.getInt64(plan_.subgroup_lanes));
    }
    case KernelSubgroupSize:
      return b.getInt64(plan_.subgroup_lanes);
    case KernelSubgroupLaneId:
      return b.CreateURem(flat_, b.getInt64(plan_.subgroup_lanes));
    default:
      LOOM_CHECK(false, "not a kernel query of this target");
      return nullptr;
  }
}

Loop Entry::open_loop(llvm::Value* begin, llvm::Value* end) {
  llvm::BasicBlock* const before = builder_.GetInsertBlock();
  Loop loop{block(), nullptr, end};
  builder_.CreateBr(loop.body);
  builder_.SetInsertPoint(loop.body);
  loop.counter = builder_.CreatePHI(builder_.getInt64Ty(), 2);
  loop.counter->addIncoming(begin, before);
  return loop;
}

llvm::BranchInst* Entry::close_loop(const Loop& loop) {
  llvm::Value* const next = builder_.CreateAdd(loop.counter, builder_.getInt64(1), "", true, true);
  llvm::BasicBlock* const latch = builder_.GetInsertBlock();
  llvm::BasicBlock* const exit = block();
  llvm::BranchInst* const branch =
      builder_.CreateCondBr(builder_.CreateICmpULT(next, loop.end), loop.body, exit);
  loop.counter->addIncoming(next, latch);
  builder_.SetInsertPoint(exit);
  return branch;
}

void Entry::guard(llvm::Value* condition, llvm::BasicBlock* otherwise) {
  llvm::BasicBlock* const inside = block();
  builder_.CreateCondBr(condition, inside, otherwise);
  builder_.SetInsertPoint(inside);
}

// Loops over the workitems of one workgroup. An axis of size 1 needs none.
void Entry::each_item(const std::function<void(llvm::Value* flat)>& body) {
  auto& b = builder_;
  llvm::BasicBlock* const done = block();
  std::array<std::optional<Loop>, 3> loops;
  for (unsigned axis = 3; axis-- > 0;) {
    item_[axis] = b.getInt64(0);
    if (plan_.size[axis] == 1u) continue;
    llvm::Value* const end = size(axis);
    if (!plan_.size[axis] || *plan_.size[axis] == 0) guard(b.CreateIsNotNull(end), done);
    loops[axis] = open_loop(b.getInt64(0), end);
    item_[axis] = loops[axis]->counter;
  }
  llvm::Value* const rows = b.CreateAdd(b.CreateMul(item_[2], size(1)), item_[1]);
  flat_ = b.CreateAdd(b.CreateMul(rows, size(0)), item_[0]);
  item_end_ = block();
  body(flat_);
  b.CreateBr(item_end_);
  b.SetInsertPoint(item_end_);
  for (const auto& loop : loops) {
    if (!loop) continue;
    llvm::BranchInst* const latch = close_loop(*loop);
    // Storage of one workitem that the next one uses again ties them together.
    const bool apart = plan_.group || plan_.private_bytes == 0;
    if (&loop == loops.data() && apart) mark_apart(*loop->body, *latch, plan_.size[0].value_or(0));
  }
  b.CreateBr(done);
  b.SetInsertPoint(done);
}

void Entry::at_item(llvm::Value* flat) {
  auto& b = builder_;
  flat_ = flat;
  item_ = {flat, b.getInt64(0), b.getInt64(0)};
  if (plan_.size[1] == 1u && plan_.size[2] == 1u) return;
  item_[0] = b.CreateURem(flat, size(0));
  llvm::Value* const row = b.CreateUDiv(flat, size(0));
  item_[1] = b.CreateURem(row, size(1));
  item_[2] = b.CreateUDiv(row, size(1));
}

void Entry::each_item_of(llvm::Value* begin, llvm::Value* end, uint64_t most,
                         const std::function<void(llvm::Value* flat)>& body) {
  const Loop loop = open_loop(begin, end);
  at_item(loop.counter);
  item_end_ = block();
  body(flat_);
  builder_.CreateBr(item_end_);
  builder_.SetInsertPoint(item_end_);
  mark_apart(*loop.body, *close_loop(loop), most);
}

// All workitems of one workgroup.
void Entry::emit_group() {
  if (plan_.guard) return emit_guarded_group();
  if (!plan_.group) {
    return each_item(
        [&](llvm::Value*) { lowering_.lower_kernel_body(plan_.kernel, entry_, *this); });
  }
  lowering_.begin_kernel(plan_.kernel, entry_, *this);
  emit_group_parts(module_, plan_, entry_, builder_, lowering_, *this);
  lowering_.end_kernel();
}

// Workgroups that are inside as a whole need no mask.
void Entry::emit_guarded_group() {
  auto& b = builder_;
  item_ = {b.CreateSub(size(0), b.getInt64(1)), b.getInt64(0), b.getInt64(0)};
  flat_ = item_[0];
  lowering_.begin_kernel(plan_.kernel, entry_, *this);
  for (const OpId op : plan_.guard->needs) lowering_.lower_whole(op);
  llvm::Value* const all = lowering_.components(module_.result(plan_.guard->condition))[0];
  lowering_.end_kernel();
  llvm::BasicBlock* const whole = block();
  llvm::BasicBlock* const partial = block();
  llvm::BasicBlock* const done = block();
  b.CreateCondBr(all, whole, partial);
  b.SetInsertPoint(whole);
  each_item([&](llvm::Value*) {
    lowering_.lower_decided_body(plan_.kernel, plan_.guard->condition, entry_, *this);
  });
  b.CreateBr(done);
  b.SetInsertPoint(partial);
  each_item([&](llvm::Value*) { lowering_.lower_kernel_body(plan_.kernel, entry_, *this); });
  b.CreateBr(done);
  b.SetInsertPoint(done);
}

// The workgroups [begin, end) row by row, so that a row is a plain loop along x. Only a range that
// leaves the first row divides.
void Entry::emit_rows() {
  auto& b = builder_;
  llvm::Value* const begin = function_->getArg(2);
  llvm::Value* const end = function_->getArg(3);
  llvm::Value* const width = count(0);
  llvm::BasicBlock* const before = b.GetInsertBlock();
  llvm::BasicBlock* const row = block();
  llvm::BasicBlock* const divide = block();
  llvm::BasicBlock* const ready = block();
  b.CreateBr(row);

  b.SetInsertPoint(row);
  llvm::PHINode* const first = b.CreatePHI(b.getInt64Ty(), 2);
  first->addIncoming(begin, before);
  b.CreateCondBr(b.CreateICmpULT(first, width), ready, divide);

  b.SetInsertPoint(divide);
  llvm::Value* const row_number = b.CreateUDiv(first, width);
  llvm::Value* const column = b.CreateSub(first, b.CreateMul(row_number, width));
  const bool has_planes = uses_group_[1] || uses_group_[2];
  llvm::Value* const height = has_planes ? count(1) : nullptr;
  llvm::Value* const plane = has_planes ? b.CreateUDiv(row_number, height) : nullptr;
  llvm::Value* const line =
      has_planes ? b.CreateSub(row_number, b.CreateMul(plane, height)) : nullptr;
  b.CreateBr(ready);

  b.SetInsertPoint(ready);
  const auto either = [&](llvm::Value* direct, llvm::Value* divided) {
    llvm::PHINode* const phi = b.CreatePHI(b.getInt64Ty(), 2);
    phi->addIncoming(direct, row);
    phi->addIncoming(divided, divide);
    return phi;
  };
  llvm::Value* const x = either(first, column);
  if (has_planes) {
    group_[1] = either(b.getInt64(0), line);
    group_[2] = either(b.getInt64(0), plane);
  }
  llvm::Value* const left = b.CreateSub(end, first);
  llvm::Value* const in_row = b.CreateSub(width, x);
  llvm::Value* const taken = b.CreateBinaryIntrinsic(llvm::Intrinsic::umin, left, in_row);
  const Loop columns = open_loop(x, b.CreateAdd(x, taken));
  group_[0] = columns.counter;
  emit_group();
  close_loop(columns);

  llvm::Value* const next = b.CreateAdd(first, taken);
  llvm::BasicBlock* const exit = block();
  first->addIncoming(next, b.GetInsertBlock());
  b.CreateCondBr(b.CreateICmpULT(next, end), row, exit);
  b.SetInsertPoint(exit);
}

void Entry::emit_groups() {
  if (uses_group_[0] || uses_group_[1] || uses_group_[2]) return emit_rows();
  const Loop groups = open_loop(function_->getArg(2), function_->getArg(3));
  emit_group();
  close_loop(groups);
}

// Turns flushing on and returns the register's former value.
llvm::Value* Entry::set_flush() {
  auto& b = builder_;
  llvm::AllocaInst* const saved = b.CreateAlloca(b.getInt32Ty());
  llvm::AllocaInst* const changed = b.CreateAlloca(b.getInt32Ty());
  b.CreateIntrinsic(llvm::Intrinsic::x86_sse_stmxcsr, {}, {saved});
  b.CreateStore(b.CreateOr(b.CreateLoad(b.getInt32Ty(), saved), kFlushBits), changed);
  b.CreateIntrinsic(llvm::Intrinsic::x86_sse_ldmxcsr, {}, {changed});
  return saved;
}

void Entry::emit(const std::string& name, DenormalMode denormals) {
  auto& b = builder_;
  start(name);
  find_queries();
  bind_arguments();
  llvm::Value* const saved = denormals == DenormalMode::Flush ? set_flush() : nullptr;
  llvm::BasicBlock* const done = done_ = block();
  // A terminator first: loads of the shape go before it.
  llvm::BasicBlock* const work = block();
  b.CreateCondBr(b.CreateICmpULT(function_->getArg(2), function_->getArg(3)), work, done);
  b.SetInsertPoint(work);
  emit_groups();
  b.CreateBr(done);
  b.SetInsertPoint(done);
  if (saved != nullptr) b.CreateIntrinsic(llvm::Intrinsic::x86_sse_ldmxcsr, {}, {saved});
  b.CreateRetVoid();
}

}  // namespace

void emit_entry(const Module& module, const KernelPlan& plan, const std::string& name,
                DenormalMode denormals, llvm::Module& target, llvm::IRBuilderBase& builder,
                BodyLowering& lowering) {
  Entry(module, plan, target, builder, lowering).emit(name, denormals);
}

}  // namespace loom
