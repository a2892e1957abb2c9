// `--no-explore` holds in KERNEL, too.
#include "hyperloom/policy/rules.h"

namespace hyperloom::policy {
namespace {

constexpr std::string_view kRule = "explore_disabled";

}  // namespace

Objection rule_explore_disabled(const Intent& intent, const Situation& situation) {
  const bool task = intent.type == "delegate" || intent.type == "propose_action";
  const bool denied = task && !situation.explore_enabled && action_of(intent) == "explore" &&
                      situation.phase == "KERNEL_AGENT";
  if (!denied) return std::nullopt;
  return object(kRule, "exploring was switched off", "start the session without --no-explore",
                Strictness::Phase);
}

}  // namespace hyperloom::policy
