#include "loom/dialect/hooks.h"

#include <fmt/core.h>

#include <algorithm>

#include "loom/base/suggest.h"
#include "loom/ir/ir_text.h"
#include "loom/ir/walk.h"

namespace loom {

VerifyHook verify_hook(OpKind kind) {
  using enum OpKind;
  switch (kind) {
    case IndexConstant:
      return verify::index_constant;
    case IndexCast:
      return verify::index_cast;
    case IndexAssume:
    case ScalarAssume:
    case BufferAssumeNoalias:
      return verify::assume;
    case ScalarConstant:
      return verify::scalar_constant;
    case ScalarExtF:
    case ScalarFPTrunc:
    case ScalarExtSI:
    case ScalarExtUI:
    case ScalarTruncI:
    case ScalarBitcast:
      return verify::scalar_cast;
    case ScalarGeluF:
      return verify::scalar_gelu;
    case ScalarBitfieldExtractU:
    case ScalarBitfieldExtractS:
      return verify::scalar_bitfield;
    case BufferPack:
      return verify::buffer_pack;
    case ViewAtomicReduce:
    case ViewAtomicRmw:
      return verify::view_atomic_combine;
    case ViewAtomicCmpxchg:
      return verify::view_atomic_cmpxchg;
    case ViewAtomicLoad:
      return verify::view_atomic_load;
    case ViewAtomicStore:
      return verify::view_atomic_store;
    case ViewPrefetch:
      return verify::view_prefetch;
    case ScfSwitch:
      return verify::scf_switch;
    case ScfLookup:
      return verify::scf_lookup;
    case ScfWhile:
      return verify::scf_while;
    case ScfCondition:
      return verify::scf_condition;
    case BufferAlloca:
      return verify::buffer_alloca;
    case BufferAssumeAlignment:
      return verify::buffer_assume_alignment;
    case BufferAssumeMemorySpace:
      return verify::buffer_assume_memory_space;
    case ViewSubview:
      return verify::view_subview;
    case ViewRefine:
      return verify::view_refine;
    case ViewLoad:
      return verify::view_load;
    case ViewStore:
      return verify::view_store;
    case ScfFor:
      return verify::scf_for;
    case ScfIf:
      return verify::scf_if;
    case ScfSelect:
      return verify::scf_select;
    case FuncDef:
      return verify::func_def;
    case FuncCall:
      return verify::func_call;
    case TemplateDef:
    case TemplateUkernel:
      return verify::template_implementation;
    case TemplateApply:
      return verify::template_apply;
    case TemplateCall:
      return verify::template_call;
    case TargetGeneric:
      return verify::target_generic;
    case ModuleImport:
      return verify::module_import;
    case EncodingLayoutStrided:
      return verify::encoding_layout_strided;
    case EncodingDefine:
      return verify::encoding_define;
    case EncodingIsa:
      return verify::encoding_isa;
    case ConfigDecl:
      return verify::config_decl;
    case ConfigDef:
      return verify::config_def;
    case ConfigGet:
      return verify::config_get;
    case KernelDef:
    case KernelDecl:
      return verify::kernel_contract;
    case KernelEntryDecl:
      return verify::kernel_entry_decl;
    case KernelLaunchConfig:
      return verify::kernel_launch_config;
    case KernelLaunch:
      return verify::kernel_launch;
    case KernelDispatch:
      return verify::kernel_dispatch;
    case KernelBarrier:
      return verify::kernel_barrier;
    case KernelSubgroupReduce:
    case KernelWorkgroupReduce:
    case KernelSubgroupScan:
    case KernelWorkgroupScan:
      return verify::kernel_collective;
    case KernelSubgroupShuffle:
    case KernelSubgroupBroadcast:
    case KernelSubgroupBroadcastFirst:
    case KernelSubgroupMatchAny:
    case KernelSubgroupMatchAll:
      return verify::kernel_lanes;
    case KernelExit:
      return verify::kernel_exit;
    case KernelAsyncCopy:
    case KernelAsyncCopyMask:
    case KernelAsyncGather:
    case KernelAsyncGatherMask:
      return verify::kernel_async_transfer;
    case KernelAsyncWait:
      return verify::kernel_async_wait;
    case SanitizerAssertValue:
    case SanitizerAssertOp:
      return verify::assume;
    case SanitizerAssertAccess:
      return verify::sanitizer_assert_access;
    case SanitizerAssertLayout:
      return verify::sanitizer_assert_layout;
    case CheckCase:
      return verify::check_case;
    case CheckBenchmark:
      return verify::check_benchmark;
    case CheckParamRange:
    case CheckParamChoice:
    case CheckParamSeed:
      return verify::check_param;
    case CheckLiteral:
      return verify::check_literal;
    case CheckGenerateFill:
    case CheckGenerateIota:
    case CheckGenerateRandomUniform:
      return verify::check_generate;
    case CheckFileReadNpy:
    case CheckFileWriteNpy:
      return verify::check_file;
    case CheckTensorView:
      return verify::check_tensor_view;
    case CheckOracleCall:
      return verify::check_oracle_call;
    case CheckExpectClose:
      return verify::check_expect_close;
    case CheckExpectShape:
      return verify::check_expect_shape;
    case CommandProgramDef:
    case CommandProgramDecl:
      return verify::command_program;
    case CommandProgramLaunch:
      return verify::command_program_launch;
    case CommandParameter:
      return verify::command_parameter;
    default:
      return verify::vector_hook(kind);
  }
}

Diagnostic& VerifyContext::error(OpId op, Diag id, std::vector<DiagParam> params) {
  return diagnostics.emit(id, module.location(op), std::move(params));
}

void VerifyContext::bad_attribute(OpId op, std::string_view attribute, std::string detail) {
  error(op, Diag::StructureAttributeValue,
        {{"op", std::string(op_name(op))},
         {"attribute", std::string(attribute)},
         {"detail", std::move(detail)}});
}

void VerifyContext::bad_literal(OpId op, std::string_view attribute, std::string detail) {
  error(op, Diag::TypeAttribute,
        {{"op", std::string(op_name(op))},
         {"attribute", std::string(attribute)},
         {"detail", std::move(detail)}});
}

void VerifyContext::bad_result(OpId op, std::string constraint) {
  error(op, Diag::TypeResultConstraint,
        {{"op", std::string(op_name(op))},
         {"result", value_name_text(module, module.result(op))},
         {"type", type(module.result(op))},
         {"constraint", std::move(constraint)}});
}

bool VerifyContext::same_count(OpId op, std::string group_a, size_t count_a, std::string group_b,
                               size_t count_b) {
  if (count_a == count_b) return true;
  error(op, Diag::StructureGroupCount,
        {{"group_a", std::move(group_a)},
         {"count_a", std::to_string(count_a)},
         {"group_b", std::move(group_b)},
         {"count_b", std::to_string(count_b)}});
  return false;
}

void VerifyContext::type_mismatch(OpId op, std::string label_a, TypeId type_a, std::string label_b,
                                  TypeId type_b) {
  error(op, Diag::TypeMismatch,
        {{"label_a", std::move(label_a)},
         {"type_a", type_text(module, type_a)},
         {"label_b", std::move(label_b)},
         {"type_b", type_text(module, type_b)}});
}

bool VerifyContext::binds_tensor(TypeId formal, TypeId found) const {
  const Type& tensor = module.types[found];
  const Type& wanted = module.types[formal];
  if (body != BodyKind::Check || tensor.kind != TypeKind::Tensor) return false;
  if (wanted.kind == TypeKind::Buffer) return true;
  return wanted.kind == TypeKind::View && dense_bytes(wanted) && wanted.element == tensor.element &&
         std::ranges::equal(wanted.dims, tensor.dims);
}

std::string VerifyContext::type(ValueId value) const {
  return type_text(module, module.type_of(value));
}

std::string VerifyContext::name(ValueId value) const {
  return "'" + value_name_text(module, value) + "'";
}

std::optional<int64_t> VerifyContext::constant(ValueId value) const {
  return exact_integer(module, value);
}

bool VerifyContext::always_runs(OpId op) const {
  const OpId parent = parent_op(module, op);
  return parent.valid() && op_info(module.op(parent).kind).has(trait::Symbol);
}

std::optional<int64_t> VerifyContext::constant_at(OpId op, ValueId value) const {
  return always_runs(op) ? constant(value) : std::nullopt;
}

OpId VerifyContext::resolve(OpId op, unsigned slot, std::initializer_list<OpKind> kinds,
                            std::string_view expected) {
  const StringId name = module.attr(op, slot).string();
  const OpId target = module.symbol(name);
  if (!target.valid()) {
    Suggestion suggestion(module.strings.text(name));
    for_each_op(module, module.body(), [&](OpId other) {
      if (sound(other)) suggestion.consider(symbol_text(module, other));
    });
    error(op, Diag::SymbolUnresolved,
          {{"symbol", std::string(module.strings.text(name))},
           {"repair", suggestion.best().empty()
                          ? fmt::format("define it, or declare its contract as a {}", expected)
                          : fmt::format("did you mean '@{}'?", suggestion.best())}});
    return {};
  }
  if (!sound(target)) return {};
  const OpKind kind = module.op(target).kind;
  for (const OpKind accepted : kinds) {
    if (kind == accepted) return target;
  }
  const std::string_view found =
      kind == OpKind::KernelEntryDecl ? "configured kernel entry" : symbol_kind_text(kind);
  error(op, Diag::SymbolWrongKind,
        {{"symbol", std::string(module.strings.text(name))},
         {"kind", std::string(found)},
         {"expected", std::string(expected)}});
  return {};
}

OpId VerifyContext::terminator(RegionId region) const {
  const OpId last = module.region(region).last;
  if (!last.valid() || !sound(last)) return {};
  return op_info(module.op(last).kind).has(trait::Terminator) ? last : OpId();
}

std::optional<int64_t> exact_integer(const Module& module, ValueId value) {
  const OpId op = module.defining_op(value);
  if (!op.valid() || module.op(op).attr_count != 1) return std::nullopt;
  const OpKind kind = module.op(op).kind;
  if (kind != OpKind::IndexConstant && kind != OpKind::ScalarConstant) return std::nullopt;
  if (!module.has_attr(op, 0)) return std::nullopt;
  const Attr& literal = module.attr(op, 0);
  const bool counts = literal.kind == AttrKind::Integer || literal.kind == AttrKind::Bool;
  return counts ? std::optional(literal.value()) : std::nullopt;
}

bool is_pure_function(const Module& module, OpId op) {
  using enum OpKind;
  switch (module.op(op).kind) {
    case FuncDef:
      return module.has_attr(op, attr_slot(FuncDef, "pure"));
    case FuncDecl:
      return module.has_attr(op, attr_slot(FuncDecl, "pure"));
    case TemplateDecl:
      return module.has_attr(op, attr_slot(TemplateDecl, "pure"));
    case TemplateDef:
      return module.has_attr(op, attr_slot(TemplateDef, "pure"));
    case TemplateUkernel:
      return module.has_attr(op, attr_slot(TemplateUkernel, "pure"));
    default:
      return false;
  }
}

StringId callee_name(const Module& module, OpId call) {
  using enum OpKind;
  switch (module.op(call).kind) {
    case TemplateApply:
      return module.attr(call, attr_slot(TemplateApply, "family")).string();
    case TemplateCall:
      return module.attr(call, attr_slot(TemplateCall, "callee")).string();
    default:
      return module.attr(call, attr_slot(FuncCall, "callee")).string();
  }
}

bool is_pure_call(const Module& module, OpId op) {
  using enum OpKind;
  const OpKind kind = module.op(op).kind;
  const unsigned pure = kind == TemplateApply  ? attr_slot(TemplateApply, "pure")
                        : kind == TemplateCall ? attr_slot(TemplateCall, "pure")
                                               : attr_slot(FuncCall, "pure");
  if (module.has_attr(op, pure)) return true;
  const OpId callee = module.symbol(callee_name(module, op));
  return callee.valid() && is_pure_function(module, callee);
}

}  // namespace loom
