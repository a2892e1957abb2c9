// What the rows of kernel/ops.def cannot say.
#include <fmt/core.h>

#include <bit>

#include "loom/dialect/hooks.h"
#include "loom/dialect/kernel/async.h"
#include "loom/dialect/signature.h"
#include "loom/ir/ir_text.h"

namespace loom::verify {
namespace {

std::string kernel_text(const Module& module, OpId op) {
  return fmt::format("'@{}'", symbol_text(module, op));
}

// The region that holds a kernel's launch arguments.
RegionId launch_region(const Module& module, OpId kernel) {
  static_assert(region_slot(OpKind::KernelDef, "body") == region_slot(OpKind::KernelDecl, "body"));
  return module.op_region(kernel, module.op(kernel).kind == OpKind::KernelEntryDecl
                                      ? region_slot(OpKind::KernelEntryDecl, "body")
                                      : region_slot(OpKind::KernelDef, "body"));
}

// Launch arguments against the contract. A buffer also takes a view or a tensor.
void check_arguments(VerifyContext& c, OpId op, OpId kernel, std::span<const ValueId> actuals) {
  const RegionId region = launch_region(c.module, kernel);
  const auto formals = c.module.args(region);
  if (!c.same_count(op, "launch arguments", actuals.size(),
                    "the launch arguments of " + kernel_text(c.module, kernel), formals.size())) {
    return;
  }
  SignatureMatch match(c.module);
  match.bind_args(region, actuals);
  for (size_t i = 0; i < formals.size(); ++i) {
    const TypeId formal = c.module.type_of(formals[i]);
    const TypeId found = c.module.type_of(actuals[i]);
    const TypeKind found_kind = c.module.types[found].kind;
    if (c.module.types[formal].kind == TypeKind::Buffer && found_kind == TypeKind::View) continue;
    if (match.same(formal, found) || c.binds_tensor(formal, found)) continue;
    c.type_mismatch(op, fmt::format("launch argument {}", i), found,
                    fmt::format("launch argument {} of {}", i, kernel_text(c.module, kernel)),
                    formal);
  }
}

void check_size_count(VerifyContext& c, OpId op, std::string_view clause, size_t found,
                      bool optional) {
  if (found == 3 || (optional && found == 0)) return;
  c.error(op, Diag::StructureOperandCount,
          {{"op", std::string(c.op_name(op))},
           {"expected", fmt::format("three '{}'", clause)},
           {"found", std::to_string(found)}});
}

bool is_count_view(const Type& type) {
  return type.kind == TypeKind::View && type.element == ScalarKind::I32 && type.rank() == 1 &&
         !type.dims[0].is_dynamic() && type.dims[0].extent() == 3 && !type.encoding.valid() &&
         !type.encoding_value.valid();
}

void check_counts(VerifyContext& c, OpId op) {
  const auto counts = operand_group(c.module, op, operand_slot(OpKind::KernelDispatch, "count"));
  if (counts.empty()) {
    c.bad_attribute(op, "count", "one to three counts or one view<3xi32> are needed");
    return;
  }
  if (counts.size() == 1 && is_count_view(c.module.types[c.module.type_of(counts[0])])) return;
  for (const ValueId count : counts) {
    if (c.module.types.is(c.module.type_of(count), ScalarKind::Index)) continue;
    c.error(op, Diag::TypeCountView, {{"type", c.type(count)}});
    return;
  }
  if (counts.size() <= 3) return;
  c.error(op, Diag::TypeCountView, {{"type", fmt::format("{} index values", counts.size())}});
}

void check_extents(VerifyContext& c, OpId op, unsigned slot, std::string_view attribute) {
  if (!c.module.has_attr(op, slot)) return;
  const auto sizes = c.module.attr(op, slot).ints;
  bool positive = sizes.size() == 3;
  for (const int64_t size : sizes) positive = positive && size > 0;
  if (!positive) c.bad_attribute(op, attribute, "three positive sizes are needed");
}

// What a contract says of storage: `readonly` has places of launch arguments, ascending; `lengths`
// and `alignments` have a number for each, 0 and 1 where nothing is said.
void check_storage_facts(VerifyContext& c, OpId kernel) {
  using enum OpKind;
  const auto args = c.module.args(c.module.op_region(kernel, region_slot(KernelDef, "body")));
  const auto is_storage = [&](size_t place) {
    return place < args.size() && !c.module.types.is_scalar(c.module.type_of(args[place]));
  };
  constexpr unsigned kReadonly = attr_slot(KernelDef, "readonly");
  if (c.module.has_attr(kernel, kReadonly)) {
    int64_t before = -1;
    for (const int64_t place : c.module.attr(kernel, kReadonly).ints) {
      if (place <= before || !is_storage(static_cast<size_t>(place))) {
        c.bad_attribute(kernel, "readonly",
                        fmt::format("{} is no place of a buffer or view after {}", place, before));
        break;
      }
      before = place;
    }
  }
  const auto check = [&](unsigned slot, std::string_view name, int64_t none, auto&& good) {
    if (!c.module.has_attr(kernel, slot)) return;
    const auto list = c.module.attr(kernel, slot).ints;
    if (list.size() != args.size()) {
      c.bad_attribute(kernel, name,
                      fmt::format("{} numbers for {} launch arguments", list.size(), args.size()));
      return;
    }
    for (size_t i = 0; i < list.size(); ++i) {
      if (list[i] == none || (is_storage(i) && good(list[i]))) continue;
      c.bad_attribute(kernel, name, fmt::format("{} for launch argument {}", list[i], i));
      return;
    }
  };
  check(attr_slot(KernelDef, "lengths"), "lengths", 0, [](int64_t bytes) { return bytes > 0; });
  check(attr_slot(KernelDef, "alignments"), "alignments", 1, [](int64_t bytes) {
    return bytes > 0 && std::has_single_bit(static_cast<uint64_t>(bytes));
  });
}

bool is_float_kind(std::string_view kind) { return kind.ends_with('f'); }

void check_clusters(VerifyContext& c, OpId op, unsigned size, unsigned stride) {
  for (const auto& [slot, name] :
       {std::pair{size, "cluster_size"}, std::pair{stride, "cluster_stride"}}) {
    if (c.module.has_attr(op, slot) && c.module.attr(op, slot).value() <= 0) {
      c.bad_attribute(op, name, fmt::format("{} is not positive", c.module.attr(op, slot).value()));
    }
  }
  if (c.module.has_attr(op, stride) && !c.module.has_attr(op, size)) {
    c.bad_attribute(op, "cluster_stride", "it needs 'cluster_size'");
  }
}

}  // namespace

void kernel_contract(VerifyContext& c, OpId op) {
  using enum OpKind;
  static_assert(attr_slot(KernelDef, "linkage") == attr_slot(KernelDecl, "linkage"));
  static_assert(attr_slot(KernelDef, "export") == attr_slot(KernelDecl, "export"));
  if (c.module.has_attr(op, attr_slot(KernelDef, "linkage")) &&
      !c.module.has_attr(op, attr_slot(KernelDef, "export"))) {
    c.bad_attribute(op, "linkage", "it needs 'export'");
  }
  if (c.module.op(op).kind != KernelDef) return;
  check_storage_facts(c, op);
  check_async_uses(c, op);
}

void kernel_entry_decl(VerifyContext& c, OpId op) {
  check_extents(c, op, attr_slot(OpKind::KernelEntryDecl, "workgroup_size"), "workgroup_size");
  check_extents(c, op, attr_slot(OpKind::KernelEntryDecl, "cluster_size"), "cluster_size");
}

void kernel_launch_config(VerifyContext& c, OpId op) {
  using enum OpKind;
  const auto count = [&](unsigned slot) { return operand_group(c.module, op, slot).size(); };
  check_size_count(c, op, "workgroups", count(operand_slot(KernelLaunchConfig, "workgroups")),
                   false);
  check_size_count(c, op, "workgroup_size",
                   count(operand_slot(KernelLaunchConfig, "workgroup_size")), false);
  check_size_count(c, op, "cluster_size", count(operand_slot(KernelLaunchConfig, "cluster_size")),
                   true);
}

void kernel_launch(VerifyContext& c, OpId op) {
  using enum OpKind;
  const OpId kernel = c.resolve(op, attr_slot(KernelLaunch, "callee"), {KernelDef, KernelDecl},
                                "kernel with a workload");
  if (!kernel.valid()) return;
  const RegionId config = c.module.op_region(kernel, region_slot(KernelDef, "config"));
  const auto formals = c.module.args(config);
  const auto workload = operand_group(c.module, op, operand_slot(KernelLaunch, "workload"));
  if (c.same_count(op, "workload values", workload.size(),
                   "the workload of " + kernel_text(c.module, kernel), formals.size())) {
    SignatureMatch match(c.module);
    match.bind_args(config, workload);
    for (size_t i = 0; i < formals.size(); ++i) {
      const TypeId formal = c.module.type_of(formals[i]);
      const TypeId found = c.module.type_of(workload[i]);
      if (match.same(formal, found)) continue;
      c.type_mismatch(op, fmt::format("workload value {}", i), found,
                      fmt::format("workload value {} of {}", i, kernel_text(c.module, kernel)),
                      formal);
    }
  }
  check_arguments(c, op, kernel, operand_group(c.module, op, operand_slot(KernelLaunch, "args")));
}

void kernel_dispatch(VerifyContext& c, OpId op) {
  using enum OpKind;
  check_counts(c, op);
  check_size_count(c, op, "workgroup_size",
                   operand_group(c.module, op, operand_slot(KernelDispatch, "size")).size(), true);
  const OpId kernel = c.resolve(op, attr_slot(KernelDispatch, "callee"),
                                {KernelDef, KernelDecl, KernelEntryDecl}, "kernel");
  if (!kernel.valid()) return;
  check_arguments(c, op, kernel, operand_group(c.module, op, operand_slot(KernelDispatch, "args")));
}

void kernel_barrier(VerifyContext& c, OpId op) {
  using enum OpKind;
  const auto word = [&](EnumId id, unsigned slot) {
    return enum_info(id).cases[c.module.attr(op, slot).bits];
  };
  const auto memory = word(EnumId::BarrierSpace, attr_slot(KernelBarrier, "memory"));
  const auto scope = word(EnumId::Scope, attr_slot(KernelBarrier, "scope"));
  const auto ordering = word(EnumId::Ordering, attr_slot(KernelBarrier, "ordering"));
  const bool local = memory == "workgroup";
  if (scope != "workgroup" && !(local && scope == "subgroup")) {
    c.bad_attribute(op, "scope",
                    fmt::format("a barrier on {} memory takes the scope {}, not {}", memory,
                                local ? "subgroup or workgroup" : "workgroup", scope));
  }
  const bool one_way = ordering == "acquire" || ordering == "release";
  if (ordering != "acq_rel" && !(one_way && !local)) {
    c.bad_attribute(op, "ordering",
                    fmt::format("a barrier on {} memory takes the ordering {}, not {}", memory,
                                local ? "acq_rel" : "acquire, release or acq_rel", ordering));
  }
}

void kernel_collective(VerifyContext& c, OpId op) {
  using enum OpKind;
  static_assert(attr_slot(KernelSubgroupReduce, "kind") ==
                attr_slot(KernelWorkgroupReduce, "kind"));
  static_assert(attr_slot(KernelSubgroupReduce, "kind") == attr_slot(KernelSubgroupScan, "kind"));
  static_assert(attr_slot(KernelSubgroupReduce, "kind") == attr_slot(KernelWorkgroupScan, "kind"));
  const Attr& attr = c.module.attr(op, attr_slot(KernelSubgroupReduce, "kind"));
  const std::string_view kind = enum_info(EnumId::CombiningKind).cases[attr.bits];
  const ValueId value = c.module.operand(op, 0);
  const Type& type = c.module.types[c.module.type_of(value)];
  const std::string_view element = is_float_kind(kind) ? "float" : "fixed-width integer";
  const bool fits = is_float_kind(kind) ? is_float(type.element) : is_integer(type.element);
  if (!fits || (type.kind == TypeKind::Vector && type.rank() != 1)) {
    c.error(op, Diag::TypeOperandConstraint,
            {{"op", std::string(c.op_name(op))},
             {"operand", value_name_text(c.module, value)},
             {"type", c.type(value)},
             {"constraint",
              fmt::format("a {0} or a rank-1 vector of {0}s to combine by {1}", element, kind)}});
  }
  const OpKind op_kind = c.module.op(op).kind;
  if (op_kind == KernelSubgroupReduce) {
    check_clusters(c, op, attr_slot(KernelSubgroupReduce, "cluster_size"),
                   attr_slot(KernelSubgroupReduce, "cluster_stride"));
  } else if (op_kind == KernelSubgroupScan) {
    check_clusters(c, op, attr_slot(KernelSubgroupScan, "cluster_size"),
                   attr_slot(KernelSubgroupScan, "cluster_stride"));
  }
}

void kernel_lanes(VerifyContext& c, OpId op) {
  const ValueId value = c.module.operand(op, 0);
  const Type& type = c.module.types[c.module.type_of(value)];
  if (type.kind != TypeKind::Vector || type.rank() == 1) return;
  c.error(op, Diag::TypeOperandConstraint,
          {{"op", std::string(c.op_name(op))},
           {"operand", value_name_text(c.module, value)},
           {"type", c.type(value)},
           {"constraint", "a payload scalar or a rank-1 vector"}});
}

void kernel_exit(VerifyContext& c, OpId op) {
  const OpId parent = c.module.region(c.module.op(op).parent).parent;
  if (parent.valid() && c.module.op(parent).kind == OpKind::KernelDef) return;
  c.error(op, Diag::StructureAncestor,
          {{"op", std::string(c.op_name(op))},
           {"ancestor", "the device body itself, not a region or function in it"}});
}

}  // namespace loom::verify
