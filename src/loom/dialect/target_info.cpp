#include "loom/dialect/target_info.h"

#include <algorithm>
#include <limits>

#include "loom/dialect/op_info.h"

namespace loom {
namespace {

constexpr unsigned kOverrides = attr_slot(OpKind::TargetGeneric, "overrides");

constexpr std::string_view kRestricting[] = {
    "subgroup_size",        "max_workgroup_size_x",    "max_workgroup_size_y",
    "max_workgroup_size_z", "max_flat_workgroup_size", "max_workgroup_storage_bytes"};

std::span<const DictEntry> overrides(const Module& module, OpId record) {
  if (module.op(record).kind != OpKind::TargetGeneric || !module.has_attr(record, kOverrides)) {
    return {};
  }
  return module.attr(record, kOverrides).entries;
}

const Attr* find_override(const Module& module, OpId record, std::string_view name) {
  for (const DictEntry& entry : overrides(module, record)) {
    if (module.strings.text(entry.key) == name) return &module.attrs[entry.value];
  }
  return nullptr;
}

}  // namespace

std::optional<TargetIdentity> target_identity(std::string_view text) {
  const size_t colon = std::min(text.find(':'), text.size());
  const std::string_view family = text.substr(0, colon);
  const std::string_view selector = colon < text.size() ? text.substr(colon + 1) : "";
  TargetIdentity target{.format = std::string(text), .facts = {}};
  if (family == "generic") {
    if (!selector.empty() && selector != "reference") return std::nullopt;
    target.format.clear();
  } else if (family == "x86_64") {
    // One format for every processor: a workitem is a lane of a subgroup of its own.
    target.format = family;
    target.facts.subgroup_size = 1;
  } else if (family == "nvptx") {
    target.facts.subgroup_size = 32;
  } else if (family == "amdgpu") {
    // Before gfx10 subgroups have 64 lanes; later generations run kernels with 32.
    if (selector.starts_with("gfx")) {
      target.facts.subgroup_size = selector.starts_with("gfx1") ? 32 : 64;
    }
  } else if (family != "spirv" && family != "wasm") {
    return std::nullopt;
  }
  return target;
}

std::string_view known_target_families() {
  return "x86_64, nvptx, amdgpu, spirv, wasm and generic, each with an optional ':selector'";
}

std::optional<bool> TargetCondition::holds(const TargetFacts& facts) const {
  if (!facts.subgroup_size) return std::nullopt;
  return *facts.subgroup_size == subgroup_size;
}

std::optional<TargetCondition> target_condition(const Module& module, AttrId id) {
  const Attr& attr = module.attrs[id];
  if (attr.kind != AttrKind::Encoding || attr.entries.size() != 1 ||
      module.strings.text(attr.string()) != "target.subgroup.size") {
    return std::nullopt;
  }
  const DictEntry& entry = attr.entries[0];
  const Attr& size = module.attrs[entry.value];
  if ((entry.key.valid() && !module.strings.text(entry.key).empty()) ||
      size.kind != AttrKind::Integer || size.value() < 1 ||
      size.value() > std::numeric_limits<uint32_t>::max()) {
    return std::nullopt;
  }
  return TargetCondition{static_cast<uint32_t>(size.value())};
}

TargetFacts record_facts(const Module& module, OpId record, const TargetFacts& known) {
  TargetFacts facts = known;
  const Attr* const size = find_override(module, record, "subgroup_size");
  if (size != nullptr) facts.subgroup_size = static_cast<uint32_t>(size->value());
  return facts;
}

std::optional<uint32_t> stated_subgroup_size(const Module& module, OpId kernel) {
  constexpr unsigned kTarget = attr_slot(OpKind::KernelDef, "target");
  if (module.op(kernel).kind != OpKind::KernelDef || !module.has_attr(kernel, kTarget)) {
    return std::nullopt;
  }
  const OpId record = module.symbol(module.attr(kernel, kTarget).string());
  if (!record.valid()) return std::nullopt;
  return record_facts(module, record, {}).subgroup_size;
}

std::string_view restricting_override(const Module& module, OpId record) {
  for (const DictEntry& entry : overrides(module, record)) {
    const std::string_view key = module.strings.text(entry.key);
    if (std::ranges::find(kRestricting, key) != std::end(kRestricting)) return key;
  }
  return {};
}

std::string_view record_format(const Module& module, OpId record) {
  const Attr* const format = find_override(module, record, "codegen_format");
  if (format == nullptr) return {};
  return module.strings.text(format->string());
}

}  // namespace loom
