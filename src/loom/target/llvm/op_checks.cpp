#include "loom/target/llvm/op_checks.h"

#include <algorithm>

#include "loom/dialect/encoding_info.h"
#include "loom/dialect/op_info.h"
#include "loom/target/llvm/encoded_plan.h"
#include "loom/target/llvm/llvm_types.h"
#include "loom/target/llvm/view_layout.h"

namespace loom {

using enum OpKind;

namespace {

bool is_strided_layout(const Module& module, ValueId encoding) {
  const OpId made = module.defining_op(encoding);
  return made.valid() && module.op(made).kind == EncodingLayoutStrided;
}

}  // namespace

std::string_view OpChecks::check(OpId op, const ExactValues& exact, LoweringPlan& plan) {
  switch (module_.op(op).kind) {
    case VectorDecode:
    case VectorEncode:
      return check_code(op, plan);
    case VectorFragmentLoad:
    case VectorFragmentStore:
      return check_fragment(op, exact, plan);
    case VectorMma:
      return check_product(op, exact, plan);
    case VectorFragment:
    case VectorFragmentRepack:
      return static_lanes(module_.types[module_.type_of(module_.operand(op, 0))]) ==
                     static_lanes(module_.types[module_.type_of(module_.result(op))])
                 ? ""
                 : "between vectors of different lanes";
    case KernelAsyncCopy:
    case KernelAsyncCopyMask:
    case KernelAsyncGather:
    case KernelAsyncGatherMask:
      return check_transfer(op);
    case EncodingIsa:
      return decided_isa(module_, op) || is_strided_layout(module_, module_.operand(op, 0))
                 ? ""
                 : "of an encoding that another operation chooses at run time";
    case SanitizerAssertLayout: {
      const TypeId type = module_.attr(op, attr_slot(SanitizerAssertLayout, "layout")).type();
      return view_layout(module_, module_.types[type]) != ViewLayout::Other
                 ? ""
                 : "of a layout that is made at run time, or of records";
    }
    case BufferLength:
      return root_length(module_, module_.operand(op, 0))
                 ? ""
                 : "of a buffer whose length the contract of the launch does not state";
    default:
      return {};
  }
}

std::string_view OpChecks::check_code(OpId op, LoweringPlan& plan) const {
  if (module_.op(op).result_count != 0 &&
      static_lanes(module_.types[module_.type_of(module_.result(op))]) == 0u) {
    return {};
  }
  const auto code = plan_code(module_, op);
  if (!code) return "with a schema that does not settle its numbers";
  const OpId load = module_.defining_op(module_.operand(op, 0));
  if (!code->family.empty() && load.valid() && module_.op(load).kind == VectorLoad) {
    plan.record_loads[load.index()] = code->family;
  }
  return {};
}

std::string_view OpChecks::check_fragment(OpId op, const ExactValues& exact,
                                          LoweringPlan& plan) const {
  const auto extents = fragment_extents(module_, exact, op);
  if (!extents) return "with extents that are not exact, or are not those of its vector";
  const OpInfo& info = op_info(module_.op(op).kind);
  const auto slot = std::ranges::find(info.operands, "w", &OperandSpec::name);
  const auto group = static_cast<unsigned>(slot - info.operands.begin());
  const Type& view = module_.types[module_.type_of(operand_group(module_, op, group)[0])];
  if (view.rank() < (extents->blocks > 1 ? 3u : 2u)) return "on a view of fewer axes";
  plan.fragments[op.index()] = *extents;
  return {};
}

std::string_view OpChecks::check_product(OpId op, const ExactValues& exact, LoweringPlan& plan) {
  if (!in_blocks_) in_blocks_ = states_blocks(module_);
  const auto product = product_extents(module_, exact, op, *in_blocks_);
  if (!product) return "with fragments whose extents are not known, or do not fit together";
  plan.products[op.index()] = *product;
  return {};
}

std::string_view OpChecks::check_transfer(OpId op) const {
  const OpKind kind = module_.op(op).kind;
  const Type& from = module_.types[module_.type_of(module_.operand(op, 0))];
  const Type& to = module_.types[module_.type_of(module_.operand(op, 1))];
  const size_t skipped = kind == KernelAsyncGather || kind == KernelAsyncGatherMask ? 1 : 0;
  if (from.element != to.element) return "between different types of elements";
  const auto elements = [](const Type& type, size_t first) {
    std::optional<int64_t> count = 1;
    for (size_t axis = first; axis < type.rank(); ++axis) {
      if (type.dims[axis].is_dynamic()) return std::optional<int64_t>();
      count = *count * type.dims[axis].extent();
    }
    return count;
  };
  if (to.rank() < skipped) return "to a view without an axis of lanes";
  const auto source = elements(from, 0);
  const auto target = elements(to, skipped);
  if (!source || !target || *source > *target) return "with extents that are not static";
  return {};
}

std::optional<bool> decided_isa(const Module& module, OpId isa) {
  const AttrId spec = module.attr_ids(isa)[attr_slot(EncodingIsa, "spec")];
  const EncodingFamilyInfo* const wanted = encoding_family_of(module, spec);
  const OpId made = module.defining_op(module.operand(isa, 0));
  if (!made.valid()) return std::nullopt;
  switch (module.op(made).kind) {
    case EncodingLayoutDense:
      return wanted != nullptr && wanted->family == EncodingFamily::Dense;
    case EncodingDefine:  // parameters that are values make no other encoding of it
      return module.attr_ids(made)[attr_slot(EncodingDefine, "spec")] == spec;
    case EncodingLayoutStrided:
      break;
    default:
      return std::nullopt;
  }
  if (wanted == nullptr || wanted->family != EncodingFamily::Strided) return false;
  const AttrId strides = encoding_argument(module, spec, "strides");
  if (!strides.valid()) return false;
  const auto& found = module.attr(made, attr_slot(EncodingLayoutStrided, "static_strides")).ints;
  const auto& named = module.attrs[strides].ints;
  if (found.size() != named.size()) return false;
  bool open = false;
  for (size_t axis = 0; axis < found.size(); ++axis) {
    if (found[axis] != kDynamicIndex && found[axis] != named[axis]) return false;
    open = open || found[axis] == kDynamicIndex;
  }
  return open ? std::optional<bool>() : true;
}

std::optional<RootLength> root_length(const Module& module, ValueId buffer) {
  for (;;) {
    const OpId op = module.defining_op(buffer);
    if (!op.valid()) break;
    switch (module.op(op).kind) {
      case BufferAlloca:
        return RootLength{module.operand(op, 0), 0};
      case BufferAssumeNoalias:
      case BufferAssumeAlignment:
      case BufferAssumeMemorySpace:
      case BufferAssumeSameRoot:
        buffer = module.operand(op, module.value(buffer).index);
        continue;
      default:
        return std::nullopt;
    }
  }
  const Value& arg = module.value(buffer);
  if (arg.kind != ValueKind::Argument) return std::nullopt;
  const OpId kernel = module.region(RegionId(arg.owner)).parent;
  constexpr unsigned kLengths = attr_slot(KernelDef, "lengths");
  if (module.op(kernel).kind != KernelDef || !module.has_attr(kernel, kLengths)) {
    return std::nullopt;
  }
  const auto lengths = module.attr(kernel, kLengths).ints;
  if (arg.index >= lengths.size() || lengths[arg.index] <= 0) return std::nullopt;
  return RootLength{ValueId(), static_cast<uint64_t>(lengths[arg.index])};
}

}  // namespace loom
