#include "loom/api/footprint.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "loom/dialect/op_info.h"
#include "loom/ir/walk.h"
#include "loom/pass/constants.h"

namespace loom {
namespace {

uint64_t end_of(uint64_t offset, uint64_t bytes) {
  return offset > std::numeric_limits<uint64_t>::max() - bytes
             ? std::numeric_limits<uint64_t>::max()
             : offset + bytes;
}

// A view's own need; its start is a multiple of its elements and of align(N).
std::optional<StorageNeed> view_need(const Type& type) {
  if (type.kind != TypeKind::View) return std::nullopt;
  const std::optional<uint64_t> bytes = dense_bytes(type);
  if (!bytes) return std::nullopt;
  return StorageNeed{*bytes, std::max<uint64_t>(type.align, scalar_bytes(type.element))};
}

// Storage whose part at `offset` has that need. An offset that is no multiple of the alignment
// says nothing about where the storage itself begins.
void include(StorageNeed& storage, uint64_t offset, const StorageNeed& part) {
  storage.bytes = std::max(storage.bytes, end_of(offset, part.bytes));
  if (offset % part.alignment == 0) storage.alignment = std::max(storage.alignment, part.alignment);
}

// The value behind promises about it, which do not move it.
ValueId promised(const Module& module, ValueId value) {
  for (;;) {
    const OpId op = module.defining_op(value);
    if (!op.valid()) return value;
    const OpKind kind = module.op(op).kind;
    if (kind != OpKind::BufferAssumeNoalias && kind != OpKind::BufferAssumeAlignment &&
        kind != OpKind::BufferAssumeMemorySpace) {
      return value;
    }
    value = module.operand(op, module.value(value).index);
  }
}

}  // namespace

std::vector<StorageNeed> kernel_needs(const Module& module, OpId kernel) {
  const RegionId body = module.op_region(kernel, region_slot(OpKind::KernelDef, "body"));
  const std::span<const ValueId> args = module.args(body);
  std::vector<StorageNeed> needs(args.size());
  for (size_t i = 0; i < args.size(); ++i) {
    if (const auto need = view_need(module.types[module.type_of(args[i])])) needs[i] = *need;
  }
  for_each_nested(module, kernel, [&](OpId op) {
    if (module.op(op).kind != OpKind::BufferView) return;
    const Value& root =
        module.value(promised(module, module.operand(op, operand_slot(OpKind::BufferView, "b"))));
    if (root.kind != ValueKind::Argument || root.owner != body.index()) return;
    const std::optional<int64_t> offset =
        exact_int(module, module.operand(op, operand_slot(OpKind::BufferView, "offset")));
    const auto need = view_need(module.types[module.type_of(module.result(op))]);
    if (!offset || *offset < 0 || !need) return;
    include(needs[root.index], static_cast<uint64_t>(*offset), *need);
  });
  return needs;
}

std::vector<StorageNeed> binding_needs(const PreparedProgram& program,
                                       std::span<const std::vector<StorageNeed>> kernels) {
  std::vector<StorageNeed> needs(program.bindings.size());
  for (const DispatchCommand& command : program.commands) {
    // A dispatch without workgroups reaches nothing.
    if (std::ranges::find(command.count, 0u) != command.count.end()) continue;
    const std::vector<StorageNeed>& kernel = kernels[command.slot];
    for (uint32_t i = 0; i < command.argument_count && i < kernel.size(); ++i) {
      const Argument& argument = program.arguments[command.argument_begin + i];
      if (argument.kind != Argument::Kind::Buffer ||
          argument.buffer.storage != StorageClass::Rebindable) {
        continue;
      }
      include(needs[argument.buffer.index], argument.buffer.offset, kernel[i]);
    }
  }
  return needs;
}

}  // namespace loom
