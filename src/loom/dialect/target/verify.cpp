// What the rows of target/ops.def cannot say.
#include <fmt/core.h>

#include <algorithm>
#include <limits>

#include "loom/dialect/hooks.h"

namespace loom::verify {
namespace {

// Overrides that are positive 32-bit numbers.
constexpr std::string_view kCounts[] = {
    "subgroup_size",         "max_workgroup_size_x",    "max_workgroup_size_y",
    "max_workgroup_size_z",  "max_flat_workgroup_size", "max_workgroup_storage_bytes",
    "max_grid_size_x",       "max_grid_size_y",         "max_grid_size_z",
    "max_workgroup_count_x", "max_workgroup_count_y",   "max_workgroup_count_z",
    "index_bitwidth",        "offset_bitwidth",         "default_pointer_bitwidth"};
// Overrides that are a word or a string.
constexpr std::string_view kTexts[] = {"abi", "export_symbol", "linkage", "codegen_format",
                                       "artifact_format"};

bool is_text(const Attr& value) {
  return value.kind == AttrKind::String || value.kind == AttrKind::Word;
}

}  // namespace

void target_generic(VerifyContext& c, OpId op) {
  constexpr unsigned kOverrides = attr_slot(OpKind::TargetGeneric, "overrides");
  if (!c.module.has_attr(op, kOverrides)) return;
  for (const DictEntry& entry : c.module.attr(op, kOverrides).entries) {
    const std::string_view key = c.module.strings.text(entry.key);
    const Attr& value = c.module.attrs[entry.value];
    if (std::ranges::find(kCounts, key) != std::end(kCounts)) {
      if (value.kind != AttrKind::Integer || value.value() < 1 ||
          value.value() > std::numeric_limits<uint32_t>::max()) {
        c.bad_literal(op, key, "it must be an integer from 1 to 4294967295");
      }
    } else if (std::ranges::find(kTexts, key) != std::end(kTexts)) {
      if (!is_text(value)) c.bad_literal(op, key, "it must be a word or a string");
    } else if (!key.starts_with("memory_space_") && !key.starts_with("contract_")) {
      c.bad_literal(op, key, "a target record has no such field");
    }
  }
}

}  // namespace loom::verify
