#include "loom/command/footprint.h"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <unordered_map>
#include <utility>

#include "loom/command/launch_values.h"
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

// Saturates: what does not fit in 64 bits fits in no storage.
uint64_t product(std::span<const int64_t> extents, uint64_t element_bytes) {
  if (std::ranges::find(extents, 0) != extents.end()) return 0;
  uint64_t bytes = element_bytes;
  for (const int64_t extent : extents) {
    if (__builtin_mul_overflow(bytes, static_cast<uint64_t>(extent), &bytes)) {
      return std::numeric_limits<uint64_t>::max();
    }
  }
  return bytes;
}

bool is_dense_view(const Type& type) {
  return type.kind == TypeKind::View && !type.encoding.valid() && !type.encoding_value.valid();
}

// A view's start is a multiple of its elements and of align(N).
uint64_t view_alignment(const Type& type) {
  return std::max<uint64_t>(type.align, scalar_bytes(type.element));
}

// The need of a view whose extents are all static.
std::optional<StorageNeed> view_need(const Type& type) {
  if (!is_dense_view(type)) return std::nullopt;
  std::vector<int64_t> extents;
  for (const Dim dim : type.dims) {
    if (dim.is_dynamic()) return std::nullopt;
    extents.push_back(dim.extent());
  }
  return StorageNeed{product(extents, scalar_bytes(type.element)), view_alignment(type)};
}

// Storage whose part at `offset` has that need. An offset that is no multiple of the alignment
// says nothing about where the storage itself begins.
void include(StorageNeed& storage, uint64_t offset, const StorageNeed& part) {
  storage.bytes = std::max(storage.bytes, end_of(offset, part.bytes));
  if (offset % part.alignment == 0) storage.alignment = std::max(storage.alignment, part.alignment);
}

std::optional<LaunchView> launch_view(const Module& module, OpId op, uint32_t argument,
                                      LaunchNumbers& values) {
  const Type& type = module.types[module.type_of(module.result(op))];
  if (!is_dense_view(type)) return std::nullopt;
  const auto offset = values.number(module.operand(op, operand_slot(OpKind::BufferView, "offset")));
  if (!offset) return std::nullopt;
  LaunchView view{argument, *offset, {}, {}, scalar_bytes(type.element), view_alignment(type)};
  for (const Dim dim : type.dims) {
    if (!dim.is_dynamic()) {
      view.fixed.push_back(dim.extent());
      continue;
    }
    const auto extent = values.number(dim.value());
    if (!extent) return std::nullopt;
    view.extents.push_back(*extent);
  }
  return view;
}

// An offset or an extent; nothing where it is unknown or negative.
std::optional<int64_t> size_of(const LaunchResults& results, uint32_t number) {
  const auto& value = results[number];
  if (!value || as_signed(*value) < 0) return std::nullopt;
  return as_signed(*value);
}

void include_views(const KernelNeeds& kernel, std::span<const Argument> arguments,
                   LaunchResults& results, std::vector<StorageNeed>& needs) {
  if (kernel.views.empty()) return;
  evaluate_launch(kernel.values, arguments, results);
  for (const LaunchView& view : kernel.views) {
    const auto offset = size_of(results, view.offset);
    std::vector<int64_t> extents = view.fixed;
    bool known = offset.has_value();
    for (const uint32_t number : view.extents) {
      const auto extent = size_of(results, number);
      known = known && extent.has_value();
      extents.push_back(extent.value_or(0));
    }
    if (!known) continue;
    include(needs[view.argument], static_cast<uint64_t>(*offset),
            {product(extents, view.element_bytes), view.alignment});
  }
}

}  // namespace

KernelNeeds kernel_needs(const Module& module, OpId kernel) {
  const RegionId body = module.op_region(kernel, region_slot(OpKind::KernelDef, "body"));
  const std::span<const ValueId> args = module.args(body);
  KernelNeeds needs;
  needs.exact.resize(args.size());
  for (size_t i = 0; i < args.size(); ++i) {
    if (const auto need = view_need(module.types[module.type_of(args[i])])) needs.exact[i] = *need;
  }
  LaunchNumbers values(module, body, needs.values);
  for_each_nested(module, kernel, [&](OpId op) {
    if (module.op(op).kind != OpKind::BufferView) return;
    const Value& root = module.value(
        promised_root(module, module.operand(op, operand_slot(OpKind::BufferView, "b"))));
    if (root.kind != ValueKind::Argument || root.owner != body.index()) return;
    const std::optional<int64_t> offset =
        exact_int(module, module.operand(op, operand_slot(OpKind::BufferView, "offset")));
    const auto need = view_need(module.types[module.type_of(module.result(op))]);
    if (offset && *offset >= 0 && need) {
      include(needs.exact[root.index], static_cast<uint64_t>(*offset), *need);
    } else if (auto view = launch_view(module, op, root.index, values)) {
      needs.views.push_back(std::move(*view));
    }
  });
  return needs;
}

std::vector<StorageNeed> launch_needs(const KernelNeeds& kernel,
                                      std::span<const Argument> arguments) {
  std::vector<StorageNeed> reached = kernel.exact;
  LaunchResults results;
  include_views(kernel, arguments, results, reached);
  return reached;
}

ProgramNeeds program_needs(const ProgramView& program,
                           std::span<const KernelNeeds* const> kernels) {
  ProgramNeeds needs;
  needs.bindings.resize(program.binding_count());
  needs.parameter_bytes.resize(program.parameter_count());
  needs.transients.resize(program.transient_count());
  std::vector<StorageNeed> reached;  // by launch argument
  LaunchResults results;
  for (const DispatchCommand& command : program.commands()) {
    // A dispatch without workgroups reaches nothing.
    if (std::ranges::find(command.count, 0u) != command.count.end()) continue;
    const KernelNeeds* const kernel = kernels[command.slot];
    if (kernel == nullptr) continue;
    const std::span<const Argument> arguments = program.arguments_of(command);
    reached = kernel->exact;
    include_views(*kernel, arguments, results, reached);
    for (size_t i = 0; i < arguments.size() && i < reached.size(); ++i) {
      const Argument& argument = arguments[i];
      if (argument.kind != Argument::Kind::Buffer) continue;
      const BufferRef& buffer = argument.buffer;
      if (buffer.storage == StorageClass::Rebindable) {
        include(needs.bindings[buffer.index], buffer.offset, reached[i]);
      } else if (buffer.storage == StorageClass::Transient) {
        include(needs.transients[buffer.index], buffer.offset, reached[i]);
      } else if (reached[i].bytes != 0) {
        uint64_t& bytes = needs.parameter_bytes[buffer.index];
        bytes = std::max(bytes, end_of(buffer.offset, reached[i].bytes));
      }
    }
  }
  return needs;
}

}  // namespace loom
