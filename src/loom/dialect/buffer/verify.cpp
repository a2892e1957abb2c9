// What the rows of buffer/ops.def cannot say.
#include <fmt/core.h>
#include <bit>

#include "loom/dialect/memory_rules.h"
#include "loom/ir/ir_text.h"

namespace loom::verify {
namespace {

using enum MemorySpace;

std::string_view space_word(MemorySpace space) {
  return enum_info(EnumId::MemorySpace).cases[static_cast<size_t>(space)];
}

void check_alignment(VerifyContext& c, OpId op, std::string_view attribute, int64_t value) {
  if (value > 0 && std::has_single_bit(static_cast<uint64_t>(value))) return;
  c.bad_attribute(op, attribute, fmt::format("{} is not a positive power of two", value));
}

}  // namespace

MemorySpace stated_space(const VerifyContext& c, ValueId value) {
  for (;;) {
    const Value& v = c.module.value(value);
    if (v.kind == ValueKind::Argument) {
      const OpId owner = c.module.region(RegionId(v.owner)).parent;
      const bool launch =
          owner.valid() && c.module.op(owner).kind == OpKind::KernelDef &&
          v.owner == c.module.op_region(owner, region_slot(OpKind::KernelDef, "body")).index();
      return launch ? Global : Unknown;
    }
    const OpId op = c.module.defining_op(value);
    if (!op.valid() || !c.sound(op)) return Unknown;
    switch (c.module.op(op).kind) {
      case OpKind::BufferAlloca:
        return static_cast<MemorySpace>(
            c.module.attr(op, attr_slot(OpKind::BufferAlloca, "space")).bits);
      case OpKind::BufferAssumeMemorySpace:
        return static_cast<MemorySpace>(
            c.module.attr(op, attr_slot(OpKind::BufferAssumeMemorySpace, "space")).bits);
      case OpKind::BufferAssumeNoalias:
      case OpKind::BufferAssumeAlignment:
        if (v.index >= c.module.operands(op).size()) return Unknown;
        value = c.module.operand(op, v.index);
        break;
      default:
        return Unknown;
    }
  }
}

void buffer_alloca(VerifyContext& c, OpId op) {
  const auto space =
      static_cast<MemorySpace>(c.module.attr(op, attr_slot(OpKind::BufferAlloca, "space")).bits);
  if (space == Unknown || space == Constant || space == Descriptor) {
    c.bad_attribute(op, "space",
                    fmt::format("storage cannot be allocated in '{}'; use global, workgroup, "
                                "private, host or generic",
                                space_word(space)));
  }
  check_alignment(c, op, "align",
                  c.module.attr(op, attr_slot(OpKind::BufferAlloca, "align")).value());
}

void buffer_pack(VerifyContext& c, OpId op) {
  const auto alignments = c.module.attr(op, attr_slot(OpKind::BufferPack, "align")).ints;
  if (alignments.empty()) c.bad_attribute(op, "align", "there is nothing to pack");
  for (const int64_t alignment : alignments) check_alignment(c, op, "align", alignment);
}

void buffer_assume_alignment(VerifyContext& c, OpId op) {
  assume(c, op);
  constexpr unsigned kSlot = attr_slot(OpKind::BufferAssumeAlignment, "minimum_alignment");
  check_alignment(c, op, "minimum_alignment", c.module.attr(op, kSlot).value());
}

void buffer_assume_memory_space(VerifyContext& c, OpId op) {
  const auto space = static_cast<MemorySpace>(
      c.module.attr(op, attr_slot(OpKind::BufferAssumeMemorySpace, "space")).bits);
  if (space == Unknown) {
    c.bad_attribute(op, "space", "'unknown' states nothing");
    return;
  }
  const ValueId root = c.module.operand(op, 0);
  const MemorySpace known = stated_space(c, root);
  if (known == Unknown || known == Generic || space == Generic || known == space) return;
  c.bad_attribute(op, "space",
                  fmt::format("{} is known to be in '{}', not in '{}'", c.name(root),
                              space_word(known), space_word(space)));
}

}  // namespace loom::verify
