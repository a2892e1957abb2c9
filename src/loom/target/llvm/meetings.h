// Where the workitems of a kernel meet: barriers and collectives whose scope holds several of them.
#pragma once

#include <cstdint>

#include "loom/dialect/op_kind.h"
#include "loom/ir/module.h"

namespace loom {

// The lanes of the kernel's subgroups: what its target record says, else 1.
uint64_t subgroup_lanes(const Module& module, OpId kernel);

// A collective of subgroups.
bool is_subgroup_collective(OpKind kind);

// Workitems meet there, where subgroups have that many lanes. With one lane, only the workgroup's
// own operations are meetings.
bool is_meeting(const Module& module, OpId op, uint64_t lanes);
// All workitems of the workgroup meet there.
bool is_workgroup_meeting(const Module& module, OpId op);
// A call of a function whose body has a meeting; bodies do not call themselves where that matters.
bool calls_meeting(const Module& module, OpId op, uint64_t lanes);

// Whether the kernel's workitems meet anywhere, calls that are inlined included.
bool workitems_meet(const Module& module, OpId kernel);

}  // namespace loom
