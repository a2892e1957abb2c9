// Work is not begun when the session has no time left.
#include <fmt/format.h>

#include "hyperloom/policy/rules.h"

namespace hyperloom::policy {
namespace {

constexpr std::string_view kRule = "time_budget";

}  // namespace

Objection rule_time_budget(const Intent& intent, const Situation& situation) {
  if (situation.seconds_left > 0) return std::nullopt;
  const bool starts_work = intent.type == "request" || intent.type == "delegate" ||
                           intent.type == "propose_action" || intent.type == "extend_lease";
  if (!starts_work || action_of(intent) == "report") return std::nullopt;
  return object(kRule, "the session's time is used up", "propose the action 'report'");
}

}  // namespace hyperloom::policy
