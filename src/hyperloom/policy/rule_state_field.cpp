// The state's facts are measured and recorded by the program; a role may change its own notes only.
#include <fmt/format.h>

#include "hyperloom/policy/rules.h"
#include "hyperloom/policy/words.h"

namespace hyperloom::policy {
namespace {

constexpr std::string_view kRule = "state_field";
// Every other field has an owner room.
constexpr std::string_view kFree = "notes plan hypotheses strategy phase_hint";

}  // namespace

Objection rule_state_field(const Intent& intent, const Situation&) {
  if (intent.type != "update_state") return std::nullopt;
  const Json& changes = value_of(intent.payload, "changes");
  if (!changes.is_object()) {
    return object("payload", "'changes' is not an object of fields and values");
  }
  for (const auto& [field, value] : changes.items()) {
    if (has_word(kFree, field)) continue;
    return object(kRule, fmt::format("the field '{}' is not a role's to change", shorten(field)),
                  fmt::format("a role may change: {}", kFree));
  }
  return std::nullopt;
}

}  // namespace hyperloom::policy
