#include "loom/target/llvm/meetings.h"

#include <algorithm>
#include <unordered_set>
#include <vector>

#include "loom/dialect/op_info.h"
#include "loom/dialect/target_info.h"
#include "loom/ir/walk.h"

namespace loom {

using enum OpKind;

uint64_t subgroup_lanes(const Module& module, OpId kernel) {
  return std::max(1u, stated_subgroup_size(module, kernel).value_or(1));
}

bool is_subgroup_collective(OpKind kind) {
  const OpInfo& info = op_info(kind);
  return info.has(trait::Convergent) && info.name.starts_with("kernel.subgroup.");
}

bool is_workgroup_meeting(const Module& module, OpId op) {
  switch (module.op(op).kind) {
    case KernelBarrier: {
      constexpr uint64_t kSubgroupScope = 1;
      return module.attr(op, attr_slot(KernelBarrier, "scope")).bits != kSubgroupScope;
    }
    case KernelWorkgroupReduce:
    case KernelWorkgroupScan:
    case KernelWorkgroupVoteAny:
    case KernelWorkgroupVoteAll:
    case KernelWorkgroupVoteCount:
      return true;
    default:
      return false;
  }
}

bool is_meeting(const Module& module, OpId op, uint64_t lanes) {
  const OpKind kind = module.op(op).kind;
  if (lanes > 1 && (is_subgroup_collective(kind) || kind == KernelBarrier)) return true;
  return is_workgroup_meeting(module, op);
}

bool calls_meeting(const Module& module, OpId op, uint64_t lanes) {
  if (module.op(op).kind != FuncCall) return false;
  std::vector<OpId> calls = {op};
  std::unordered_set<uint32_t> seen;
  bool found = false;
  while (!calls.empty() && !found) {
    const OpId call = calls.back();
    calls.pop_back();
    const OpId callee = module.symbol(symbol_ref(module, call, attr_slot(FuncCall, "callee")));
    if (!callee.valid() || !seen.insert(callee.index()).second) continue;
    for_each_nested(module, callee, [&](OpId inner) {
      found = found || is_meeting(module, inner, lanes);
      if (module.op(inner).kind == FuncCall) calls.push_back(inner);
    });
  }
  return found;
}

bool workitems_meet(const Module& module, OpId kernel) {
  const uint64_t lanes = subgroup_lanes(module, kernel);
  bool found = false;
  for_each_nested(module, kernel, [&](OpId op) {
    found = found || is_meeting(module, op, lanes) || calls_meeting(module, op, lanes);
  });
  return found;
}

}  // namespace loom
