// Actions that are steps of the coordinator itself.
#include <fmt/format.h>

#include "hyperloom/policy/rules.h"
#include "hyperloom/policy/words.h"

namespace hyperloom::policy {
namespace {

constexpr std::string_view kRule = "phase_incompatible";
constexpr std::string_view kInternal =
    "conc_sweep roofline profile replay_warm_recipe targeted_build framework_agent";

}  // namespace

Objection rule_coordinator_internal_action(const Intent& intent, const Situation&) {
  const bool task = intent.type == "delegate" || intent.type == "propose_action";
  if (!task || !has_word(kInternal, action_of(intent))) return std::nullopt;
  return object(kRule, fmt::format("'{}' is a step of the coordinator", action_of(intent)));
}

}  // namespace hyperloom::policy
