// `recover` is robustness's action, and the only one that it delegates.
#include <fmt/format.h>

#include "hyperloom/policy/rules.h"
#include "hyperloom/policy/words.h"

namespace hyperloom::policy {
namespace {

constexpr std::string_view kRule = "delegate_action_source";

}  // namespace

Objection rule_delegate_action_source(const Intent& intent, const Situation& situation) {
  if (intent.type != "delegate") return std::nullopt;
  const bool recover = action_of(intent) == "recover";
  if (recover == (situation.role == "robustness")) return std::nullopt;
  return object(kRule, fmt::format("{} delegated '{}'", situation.role, shorten(action_of(intent))),
                recover ? "leave recovery to robustness" : "robustness delegates 'recover' only");
}

}  // namespace hyperloom::policy
