// Unknown roles, and intent types that a role may not emit.
#include <fmt/format.h>

#include <algorithm>

#include "hyperloom/policy/rules.h"
#include "hyperloom/policy/words.h"

namespace hyperloom::policy {
namespace {

constexpr std::string_view kRule = "role";

struct Row {
  std::string_view role;
  std::string_view types;
};
constexpr Row kRows[] = {
#define HL_ROLE(role, types) {role, types},
#include "hyperloom/policy/roles.def"
#undef HL_ROLE
};

}  // namespace

Objection rule_role(const Intent& intent, const Situation& situation) {
  const auto* row = std::ranges::find(kRows, std::string_view(situation.role), &Row::role);
  if (row == std::end(kRows)) {
    return object(kRule, fmt::format("'{}' is no role", shorten(situation.role)));
  }
  // Who may request is said by a rule of its own.
  if (intent.type == "request" || has_word(row->types, intent.type)) return std::nullopt;
  return object(kRule, fmt::format("{} may not emit '{}'", situation.role, intent.type),
                fmt::format("it may emit: {}", row->types));
}

}  // namespace hyperloom::policy
