// Fields that decide what runs or what counts are set by the coordinator and the command line.
#include <fmt/format.h>

#include "hyperloom/policy/rules.h"

namespace hyperloom::policy {
namespace {

constexpr std::string_view kRule = "payload";

// The first of the fields, at any depth, or "". Without recursion: a payload may nest deeply.
std::string find_field(const Json& payload) {
  std::vector<const Json*> open = {&payload};
  while (!open.empty()) {
    const Json& value = *open.back();
    open.pop_back();
    if (!value.is_structured()) continue;
    for (const auto& [key, inner] : value.items()) {
      if (value.is_object() && !inner.is_null() &&
          (key == "rebuild_command" || key == "base_tput" || key == "dry_run")) {
        return key;
      }
      open.push_back(&inner);
    }
  }
  return "";
}

}  // namespace

Objection rule_coordinator_field(const Intent& intent, const Situation& situation) {
  if (intent.type != "request" || situation.command_line) return std::nullopt;
  if (!situation.kinds.contains(text_of(intent.payload, "kind"))) return std::nullopt;
  const std::string field = find_field(intent.payload);
  if (field.empty()) return std::nullopt;
  return object(kRule, fmt::format("'{}' is not a role's to set", field),
                fmt::format("leave '{}' out", field));
}

}  // namespace hyperloom::policy
