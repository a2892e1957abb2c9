// Transfers between global and workgroup memory, and the groups that they are awaited in.
#include "loom/dialect/kernel/async.h"

#include <fmt/core.h>

#include <unordered_map>

#include "loom/dialect/encoding_info.h"
#include "loom/dialect/memory_rules.h"
#include "loom/ir/ir_text.h"
#include "loom/ir/walk.h"

namespace loom::verify {
namespace {

using enum OpKind;

bool is_transfer(OpKind kind) {
  return kind == KernelAsyncCopy || kind == KernelAsyncCopyMask || kind == KernelAsyncGather ||
         kind == KernelAsyncGatherMask;
}

// The space of the storage behind a view; Unknown where nothing states it.
MemorySpace space_of_view(const VerifyContext& c, ValueId view) {
  for (;;) {
    const OpId op = c.module.defining_op(view);
    if (!op.valid() || !c.sound(op)) return MemorySpace::Unknown;
    const OpKind kind = c.module.op(op).kind;
    if (kind == BufferView) return stated_space(c, c.module.operand(op, 0));
    if (kind != ViewSubview && kind != ViewRefine) return MemorySpace::Unknown;
    view = c.module.operand(op, 0);
  }
}

void check_space(VerifyContext& c, OpId op, std::string_view side, ValueId view, bool workgroup) {
  const MemorySpace space = space_of_view(c, view);
  if (space == MemorySpace::Unknown || space == MemorySpace::Generic) return;
  const bool global = space == MemorySpace::Global || space == MemorySpace::Constant ||
                      space == MemorySpace::Descriptor;
  if (workgroup ? space == MemorySpace::Workgroup : global) return;
  c.bad_attribute(op, "direction",
                  fmt::format("the {} '{}' is in {} memory", side, value_name_text(c.module, view),
                              enum_info(EnumId::MemorySpace).cases[static_cast<size_t>(space)]));
}

struct Uses {
  uint32_t groups = 0;   // of a token
  bool awaited = false;  // of a group: by a wait, or carried on by a loop
};

bool carries(OpKind kind) { return kind == ScfFor || kind == ScfYield; }

bool from_loop(const VerifyContext& c, ValueId value) {
  const Value& v = c.module.value(value);
  const OpId op =
      v.kind == ValueKind::Result ? OpId(v.owner) : c.module.region(RegionId(v.owner)).parent;
  return op.valid() && c.module.op(op).kind == ScfFor;
}

void bad_use(VerifyContext& c, OpId op, ValueId value, std::string detail) {
  c.error(op, Diag::DominanceAsyncUser,
          {{"op", std::string(c.op_name(op))},
           {"type", c.type(value)},
           {"name", value_name_text(c.module, value)},
           {"detail", std::move(detail)}});
}

// Records what `user` does with an async value, or reports that it must not.
void visit_use(VerifyContext& c, OpId user, ValueId value, Uses& uses) {
  const OpKind kind = c.module.op(user).kind;
  const OpId producer = c.module.defining_op(value);
  if (c.module.types[c.module.type_of(value)].kind == TypeKind::AsyncToken) {
    if (kind != KernelAsyncGroup) return bad_use(c, user, value, "only a group takes it");
    ++uses.groups;
    if (producer.valid() && is_transfer(c.module.op(producer).kind)) return;
    return bad_use(c, user, value, "no transfer produced it");
  }
  if (kind != KernelAsyncWait && !carries(kind)) {
    return bad_use(c, user, value, "only a wait or a loop takes it");
  }
  uses.awaited = true;
  if (from_loop(c, value)) return;
  if (producer.valid() && c.module.op(producer).kind == KernelAsyncGroup) return;
  bad_use(c, user, value, "no 'kernel.async.group' produced it");
}

}  // namespace

void kernel_async_transfer(VerifyContext& c, OpId op) {
  const OpKind kind = c.module.op(op).kind;
  static_assert(attr_slot(KernelAsyncCopy, "direction") ==
                attr_slot(KernelAsyncGatherMask, "direction"));
  const ValueId source = c.module.operand(op, 0);
  const ValueId target = c.module.operand(op, 1);
  const bool in = static_cast<AsyncDirection>(
                      c.module.attr(op, attr_slot(KernelAsyncCopy, "direction")).bits) ==
                  AsyncDirection::GlobalToWorkgroup;
  check_space(c, op, "source", source, !in);
  check_space(c, op, "destination", target, in);
  check_cache(c, op);
  const Type& to = c.module.types[c.module.type_of(target)];
  const auto source_bytes = dense_bytes(c.module.types[c.module.type_of(source)]);
  const auto target_bytes = dense_bytes(to);
  const auto complain = [&](std::string detail) {
    c.error(op, Diag::ShapeMismatch, {{"detail", std::move(detail)}});
  };
  if (!source_bytes || !target_bytes) {
    return complain(fmt::format("{} and {} must both be dense with static extents", c.type(source),
                                c.type(target)));
  }
  if (kind == KernelAsyncCopy || kind == KernelAsyncCopyMask) {
    if (*source_bytes == *target_bytes) return;
    return complain(fmt::format("the source has {} bytes but the destination has {}", *source_bytes,
                                *target_bytes));
  }
  if (to.rank() < 2) {
    return complain(fmt::format("{} has no leading axis of lanes", c.type(target)));
  }
  const auto lanes = static_cast<uint64_t>(to.dims[0].extent());
  const uint64_t slot = lanes == 0 ? 0 : *target_bytes / lanes;
  if (slot >= *source_bytes) return;
  complain(fmt::format("the source has {} bytes but each lane of the destination has {}",
                       *source_bytes, slot));
}

void kernel_async_wait(VerifyContext& c, OpId op) {
  const int64_t newer = c.module.attr(op, attr_slot(KernelAsyncWait, "newer_groups")).value();
  if (newer >= 0 && newer < 65536) return;
  c.bad_attribute(op, "newer_groups", fmt::format("{} is not from 0 to 65535", newer));
}

void check_async_uses(VerifyContext& c, OpId symbol) {
  std::vector<OpId> producers;
  std::unordered_map<uint32_t, Uses> uses;  // by value
  for_each_nested(c.module, symbol, [&](OpId op) {
    if (!c.sound(op)) return;
    const OpKind kind = c.module.op(op).kind;
    if (is_transfer(kind) || kind == KernelAsyncGroup) producers.push_back(op);
    for (const ValueId value : c.module.operands(op)) {
      const TypeKind type = c.module.types[c.module.type_of(value)].kind;
      if (type != TypeKind::AsyncToken && type != TypeKind::AsyncGroup) continue;
      visit_use(c, op, value, uses[value.index()]);
    }
  });
  for (const OpId op : producers) {
    const ValueId value = c.module.result(op);
    const Uses& found = uses[value.index()];
    if (c.module.op(op).kind == KernelAsyncGroup) {
      if (found.awaited) continue;
      c.error(op, Diag::DominanceGroupUses, {{"name", value_name_text(c.module, value)}});
    } else if (found.groups != 1) {
      c.error(op, Diag::DominanceTokenUses,
              {{"name", value_name_text(c.module, value)},
               {"count", std::to_string(found.groups)},
               {"repair", found.groups == 0 ? "put it into a group with kernel.async.group" : ""}});
    }
  }
}

}  // namespace loom::verify
