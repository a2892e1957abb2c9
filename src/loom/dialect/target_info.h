// What target records and target conditions say.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "loom/ir/module.h"

namespace loom {

// What compilation knows of its target; a member without a value is unknown.
struct TargetFacts {
  std::optional<uint32_t> subgroup_size;

  friend bool operator==(const TargetFacts&, const TargetFacts&) = default;
};

// A target as `family` or `family:selector` names it.
struct TargetIdentity {
  std::string format;  // of `codegen_format`; empty for the generic target
  TargetFacts facts;
};
// x86_64, nvptx, amdgpu, spirv, wasm and generic, with their selectors; nothing for another family.
std::optional<TargetIdentity> target_identity(std::string_view text);
std::string_view known_target_families();

// `#target.subgroup.size<N>`, the only condition so far.
struct TargetCondition {
  uint32_t subgroup_size = 0;

  // Nothing when the facts do not decide.
  std::optional<bool> holds(const TargetFacts& facts) const;
};
// Nothing when the attribute is no condition with a size from 1 to 4294967295.
std::optional<TargetCondition> target_condition(const Module& module, AttrId attr);

// What a `target.generic` says; `known` where it says nothing.
TargetFacts record_facts(const Module& module, OpId record, const TargetFacts& known);
// The lanes of a kernel's subgroups, where its target record says it.
std::optional<uint32_t> stated_subgroup_size(const Module& module, OpId kernel);
// The first override of a `target.generic` that restricts local execution (subgroup size, workgroup
// size or storage); empty when none does.
std::string_view restricting_override(const Module& module, OpId record);
// The family that a record's `codegen_format` names; empty when it has none.
std::string_view record_format(const Module& module, OpId record);

}  // namespace loom
