// Once the session closes, only messages, alerts and the report are left.
#include <fmt/format.h>

#include "hyperloom/policy/rules.h"

namespace hyperloom::policy {
namespace {

constexpr std::string_view kRule = "closing_phase_only_report";

}  // namespace

Objection rule_closing_phase_only_report(const Intent& intent, const Situation& situation) {
  if (!situation.closing) return std::nullopt;
  if (intent.type == "send_message" || intent.type == "alert") return std::nullopt;
  if (intent.type == "propose_action" && action_of(intent) == "report") return std::nullopt;
  return object(kRule, fmt::format("the session is closing, and '{}' came", intent.type),
                "propose the action 'report'");
}

}  // namespace hyperloom::policy
