#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/MDBuilder.h>

#include <algorithm>

#include "loom/base/check.h"
#include "loom/dialect/encoding_info.h"
#include "loom/dialect/op_info.h"
#include "loom/ir/ir_text.h"
#include "loom/target/llvm/body.h"
#include "loom/target/llvm/frame.h"
#include "loom/target/llvm/op_checks.h"
#include "loom/target/llvm/streaming.h"
#include "loom/target/llvm/view_layout.h"

namespace loom {

using enum OpKind;

namespace {

// A power of two that divides what the type promises.
llvm::Align access_alignment(const Type& type) {
  if (type.align == 0) return llvm::Align(scalar_bytes(type.element));
  return llvm::Align(type.align & (~type.align + 1));
}

}  // namespace

void BodyLowering::emit_memory_op(OpId op) {
  switch (module_.op(op).kind) {
    case BufferAlloca:
      return emit_alloca(op);
    case BufferView:
      return emit_buffer_view(op);
    case BufferAssumeNoalias:
      return emit_noalias(op);
    case ViewSubview:
      return emit_subview(op);
    case ViewLoad:
      return emit_load(op);
    case ViewStore:
      return emit_store(op);
    case ViewPrefetch:
      return emit_prefetch(op);
    case BufferPack:
      return emit_pack(op);
    case BufferLength:
      return emit_length(op);
    default:  // identities: refine and the other assumptions
      for (unsigned i = 0; i < module_.op(op).result_count; ++i) {
        copy_value(module_.operand(op, i), module_.result(op, i));
        if (module_.op(op).kind != BufferAssumeAlignment) continue;
        assume_alignment(
            op, module_.result(op, i),
            module_.attr(op, attr_slot(BufferAssumeAlignment, "minimum_alignment")).value());
      }
  }
}

void BodyLowering::copy_value(ValueId from, ValueId to) {
  Components components;
  append_components(from, components);
  std::span<llvm::Value* const> rest = components;
  bind_components(to, rest);
  inherit_scope(from, to);
}

void BodyLowering::emit_alloca(OpId op) {
  const uint64_t bytes = plan_.alloca_bytes.at(op.index());
  const auto align =
      static_cast<uint64_t>(module_.attr(op, attr_slot(BufferAlloca, "align")).value());
  const auto space =
      static_cast<MemorySpace>(module_.attr(op, attr_slot(BufferAlloca, "space")).bits);
  const bool shared = space == MemorySpace::Workgroup || queries_ == nullptr;
  const uint64_t copies = shared ? 1 : queries_->private_copies();
  const uint64_t stride = llvm::alignTo(bytes, llvm::Align(align));
  llvm::AllocaInst* storage = nullptr;
  {
    llvm::IRBuilderBase::InsertPointGuard guard(builder_);
    builder_.SetInsertPoint(entry_, entry_->begin());
    storage = builder_.CreateAlloca(
        llvm::ArrayType::get(builder_.getInt8Ty(), copies == 1 ? bytes : stride * copies));
    storage->setAlignment(llvm::Align(align));
  }
  if (copies == 1) return bind(module_.result(op), storage);
  llvm::Value* const offset =
      builder_.CreateMul(queries_->private_copy(), index_constant(static_cast<int64_t>(stride)));
  bind(module_.result(op), builder_.CreatePtrAdd(storage, offset));
}

// Element strides of all axes of a strided view, and of all but the last one of a dense view.
void BodyLowering::view_strides(const Type& type, Components& to) {
  if (view_layout(module_, type) == ViewLayout::Strided) {
    to.clear();
    const OpId made =
        type.encoding_value.valid() ? module_.defining_op(type.encoding_value) : OpId();
    if (!made.valid() || module_.op(made).kind != EncodingLayoutStrided) {
      for (const int64_t each : element_layout(module_, type).strides) {
        to.push_back(index_constant(each));
      }
      return;
    }
    const auto fixed = module_.attr(made, attr_slot(EncodingLayoutStrided, "static_strides")).ints;
    unsigned next_operand = 0;
    for (unsigned axis = 0; axis < fixed.size(); ++axis) {
      to.push_back(place(module_.operands(made), fixed, axis, next_operand));
    }
    return;
  }
  to.assign(type.rank() - 1, nullptr);
  llvm::Value* stride = index_constant(1);
  for (size_t axis = type.rank() - 1; axis > 0; --axis) {
    stride = builder_.CreateMul(stride, extent(type.dims[axis]));
    to[axis - 1] = stride;
  }
}

// The last axis has a stride of its own too.
bool BodyLowering::has_stride(ValueId view) const {
  return view_layout(module_, module_.types[module_.type_of(view)]) == ViewLayout::Strided;
}

llvm::Value* BodyLowering::stride(ValueId view, size_t axis) {
  const size_t rank = module_.types[module_.type_of(view)].rank();
  if (axis + 1 == rank && !has_stride(view)) return index_constant(1);
  return strides_.at(view.index())[axis];
}

void BodyLowering::emit_buffer_view(OpId op) {
  const ValueId buffer = module_.operand(op, 0);
  const ValueId result = module_.result(op);
  const Type& type = module_.types[module_.type_of(result)];
  bind(result, builder_.CreatePtrAdd(value(buffer), value(module_.operand(op, 1))));
  if (component_count(module_.type_of(result)) > 1) {
    Components strides;
    view_strides(type, strides);
    strides_[result.index()] = std::move(strides);
  }
  inherit_scope(buffer, result);
}

// The sum of index times stride, in elements.
llvm::Value* BodyLowering::linear_index(ValueId view, std::span<const ValueId> operands,
                                        std::span<const int64_t> fixed) {
  llvm::Value* linear = index_constant(0);
  unsigned next_operand = 0;
  for (unsigned axis = 0; axis < fixed.size(); ++axis) {
    llvm::Value* term = place(operands, fixed, axis, next_operand);
    if (axis + 1 < fixed.size() || has_stride(view)) {
      term = builder_.CreateMul(term, stride(view, axis));
    }
    linear = axis == 0 ? term : builder_.CreateAdd(linear, term);
  }
  return linear;
}

// Where an executed access goes, hence inside the root.
llvm::Value* BodyLowering::access_address(ValueId view, std::span<const ValueId> operands,
                                          std::span<const int64_t> fixed) {
  const Type& type = module_.types[module_.type_of(view)];
  return builder_.CreateInBoundsGEP(llvm_memory_type(builder_.getContext(), type.element),
                                    value(view), linear_index(view, operands, fixed));
}

void BodyLowering::emit_subview(OpId op) {
  const ValueId view = operand_group(module_, op, operand_slot(ViewSubview, "w"))[0];
  const auto indices = operand_group(module_, op, operand_slot(ViewSubview, "index"));
  const auto fixed = module_.attr(op, attr_slot(ViewSubview, "static_index")).ints;
  const Type& type = module_.types[module_.type_of(view)];
  llvm::Value* const address =
      builder_.CreateGEP(llvm_memory_type(builder_.getContext(), type.element), value(view),
                         linear_index(view, indices, fixed));
  copy_value(view, module_.result(op));
  bind(module_.result(op), address);
}

// A volatile access is performed exactly as written.
void BodyLowering::emit_load(OpId op) {
  const ValueId view = operand_group(module_, op, operand_slot(ViewLoad, "w"))[0];
  const auto indices = operand_group(module_, op, operand_slot(ViewLoad, "index"));
  const auto fixed = module_.attr(op, attr_slot(ViewLoad, "static_index")).ints;
  const Type& type = module_.types[module_.type_of(view)];
  const bool is_volatile = (flags_of(module_, op, attr_slot(ViewLoad, "flags")) & kVolatile) != 0;
  llvm::Value* const address = access_address(view, indices, fixed);
  llvm::LoadInst* const load =
      builder_.CreateAlignedLoad(llvm_memory_type(builder_.getContext(), type.element), address,
                                 access_alignment(type), is_volatile);
  describe_access(load, view);
  stream(load, op);
  bind(module_.result(op), from_memory(builder_, load, type.element));
}

void BodyLowering::emit_store(OpId op) {
  const ValueId source = operand_group(module_, op, operand_slot(ViewStore, "x"))[0];
  const ValueId view = operand_group(module_, op, operand_slot(ViewStore, "w"))[0];
  const auto indices = operand_group(module_, op, operand_slot(ViewStore, "index"));
  const auto fixed = module_.attr(op, attr_slot(ViewStore, "static_index")).ints;
  const Type& type = module_.types[module_.type_of(view)];
  const bool is_volatile = (flags_of(module_, op, attr_slot(ViewStore, "flags")) & kVolatile) != 0;
  llvm::Value* const address = access_address(view, indices, fixed);
  llvm::StoreInst* const store =
      builder_.CreateAlignedStore(to_memory(builder_, value(source), type.element), address,
                                  access_alignment(type), is_volatile);
  describe_access(store, view);
  stream(store, op);
}

// The element need not exist, since the hint may go ahead of a loop's end.
void BodyLowering::emit_prefetch(OpId op) {
  const ValueId view = operand_group(module_, op, operand_slot(ViewPrefetch, "w"))[0];
  const auto indices = operand_group(module_, op, operand_slot(ViewPrefetch, "index"));
  const auto fixed = module_.attr(op, attr_slot(ViewPrefetch, "static_index")).ints;
  const uint64_t intent = module_.attr(op, attr_slot(ViewPrefetch, "intent")).bits;
  const uint64_t near = module_.attr(op, attr_slot(ViewPrefetch, "locality")).bits;
  const Type& type = module_.types[module_.type_of(view)];
  llvm::Value* const address =
      builder_.CreateGEP(llvm_memory_type(builder_.getContext(), type.element), value(view),
                         linear_index(view, indices, fixed));
  // Of `none l1 l2 l3` LLVM counts the other way, from 3, as near as can be, to 0. Reads are 0 on
  // both sides.
  const auto kept = static_cast<uint32_t>(near == 0 ? 0 : 4 - near);
  llvm::Value* const operands[] = {address, builder_.getInt32(static_cast<uint32_t>(intent)),
                                   builder_.getInt32(kept), builder_.getInt32(1)};
  builder_.CreateIntrinsic(llvm::Intrinsic::prefetch, {builder_.getPtrTy()}, operands);
}

// Ranges one behind the other, each on its alignment; the whole on the greatest one.
void BodyLowering::emit_pack(OpId op) {
  auto& b = builder_;
  const auto aligns = module_.attr(op, attr_slot(BufferPack, "align")).ints;
  int64_t greatest = 1;
  llvm::Value* total = index_constant(0);
  const auto round_up = [&](int64_t align) {
    total = b.CreateAnd(b.CreateAdd(total, index_constant(align - 1)), index_constant(-align));
  };
  for (unsigned i = 0; i < aligns.size(); ++i) {
    greatest = std::max(greatest, aligns[i]);
    round_up(aligns[i]);
    bind(module_.result(op, i + 1), total);
    total = b.CreateAdd(total, value(module_.operand(op, i)));
  }
  round_up(greatest);
  bind(module_.result(op), total);
}

void BodyLowering::emit_length(OpId op) {
  const auto length = root_length(module_, module_.operand(op, 0));
  LOOM_CHECK(length.has_value(), "a length that the plan refuses");
  bind(module_.result(op),
       length->value.valid() ? value(length->value) : builder_.getInt64(length->bytes));
}

// --- aliasing -----------------------------------------------------------------------------------

// The buffer is a launch argument, so it is the same root in every workitem.
bool BodyLowering::is_kernel_root(ValueId buffer) const {
  for (;;) {
    const OpId op = module_.defining_op(buffer);
    if (!op.valid()) {
      const Value& arg = module_.value(buffer);
      return kernel_.valid() && arg.kind == ValueKind::Argument &&
             module_.region(RegionId(arg.owner)).parent == kernel_;
    }
    switch (module_.op(op).kind) {
      case BufferAssumeNoalias:
      case BufferAssumeAlignment:
      case BufferAssumeMemorySpace:
        buffer = module_.operand(op, module_.value(buffer).index);
        break;
      default:
        return false;
    }
  }
}

// LLVM's scopes hold for the whole function, loops over workitems included, so only promises about
// launch arguments, made outside every loop, are passed on.
void BodyLowering::emit_noalias(OpId op) {
  const auto operands = module_.operands(op);
  bool applies = frames_.size() == 1 && operands.size() > 1;
  for (size_t i = 0; i < operands.size(); ++i) {
    copy_value(operands[i], module_.result(op, static_cast<unsigned>(i)));
    applies = applies && is_kernel_root(operands[i]);
  }
  for (const ValueId operand : operands) {
    if (operands.size() < 2) break;
    if (applies) {
      note_fact(op, "noalias", value_name_text(module_, operand));
    } else {
      note_missing(op, "noalias", value_name_text(module_, operand),
                   "a promise counts where it is made outside of loops and about arguments of the "
                   "launch");
    }
  }
  if (!applies) return;
  llvm::MDBuilder metadata(builder_.getContext());
  if (scope_domain_ == nullptr) scope_domain_ = metadata.createAnonymousAliasScopeDomain();
  std::vector<llvm::Metadata*> all;
  all.reserve(operands.size());
  for (size_t i = 0; i < operands.size(); ++i) {
    all.push_back(metadata.createAnonymousAliasScope(scope_domain_));
  }
  for (size_t i = 0; i < operands.size(); ++i) {
    std::vector<llvm::Metadata*> others = all;
    others.erase(others.begin() + static_cast<std::ptrdiff_t>(i));
    scope_of_[module_.result(op, static_cast<unsigned>(i)).index()] =
        static_cast<uint32_t>(scopes_.size());
    scopes_.push_back({llvm::MDNode::get(builder_.getContext(), all[i]),
                       llvm::MDNode::get(builder_.getContext(), others)});
  }
}

void BodyLowering::inherit_scope(ValueId from, ValueId to) {
  if (readonly_.contains(from.index())) {
    readonly_.insert(to.index());
  } else {
    readonly_.erase(to.index());
  }
  const auto scope = scope_of_.find(from.index());
  if (scope == scope_of_.end()) {
    scope_of_.erase(to.index());
  } else {
    scope_of_[to.index()] = uint32_t{scope->second};
  }
}

void BodyLowering::promise_readonly(ValueId arg) {
  readonly_.insert(arg.index());
  if (readonly_scope_ != nullptr) return;
  llvm::MDBuilder metadata(builder_.getContext());
  if (scope_domain_ == nullptr) scope_domain_ = metadata.createAnonymousAliasScopeDomain();
  readonly_scope_ =
      llvm::MDNode::get(builder_.getContext(), {metadata.createAnonymousAliasScope(scope_domain_)});
}

void BodyLowering::stream(llvm::Value* access, OpId op) {
  const OpInfo& info = op_info(module_.op(op).kind);
  const auto slot = std::ranges::find(info.attrs, "cache_temporal", &AttrSpec::name);
  if (slot == info.attrs.end()) return;
  const auto number = static_cast<unsigned>(slot - info.attrs.begin());
  if (!module_.has_attr(op, number)) return;
  switch (static_cast<CacheTemporal>(module_.attr(op, number).bits)) {
    case CacheTemporal::NonTemporal:
    case CacheTemporal::NonTemporalWriteback:
    case CacheTemporal::Bypass:
      break;
    default:
      return;
  }
  if (!llvm::isa<llvm::LoadInst, llvm::StoreInst>(access)) {
    return note_missing(op, "whole vectors", std::string(info.name),
                        "an access with a mask or with offsets goes through the caches");
  }
  note_fact(op, "streamed", std::string(info.name));
  llvm::cast<llvm::Instruction>(access)->setMetadata(llvm::LLVMContext::MD_access_group,
                                                     streaming_group(target_));
}

// What nothing writes is a scope that no other access is in.
void BodyLowering::describe_access(llvm::Value* access, ValueId view) {
  auto* const instruction = llvm::cast<llvm::Instruction>(access);
  llvm::MDNode* own = nullptr;
  llvm::MDNode* others = nullptr;
  const auto scope = scope_of_.find(view.index());
  if (aids_.notes != nullptr) {
    note_access(view, instruction->mayWriteToMemory(), scope != scope_of_.end());
  }
  if (scope != scope_of_.end()) {
    own = scopes_[scope->second].own;
    others = scopes_[scope->second].others;
  }
  if (!readonly_.contains(view.index())) {
    others = llvm::MDNode::concatenate(others, readonly_scope_);
  } else {
    own = llvm::MDNode::concatenate(own, readonly_scope_);
    if (llvm::isa<llvm::LoadInst>(instruction) && !instruction->isVolatile()) {
      instruction->setMetadata(llvm::LLVMContext::MD_invariant_load,
                               llvm::MDNode::get(builder_.getContext(), {}));
    }
  }
  if (own != nullptr) instruction->setMetadata(llvm::LLVMContext::MD_alias_scope, own);
  if (others != nullptr) instruction->setMetadata(llvm::LLVMContext::MD_noalias, others);
}

}  // namespace loom
