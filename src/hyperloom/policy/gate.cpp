#include "hyperloom/policy/gate.h"

#include "hyperloom/policy/rules.h"

namespace hyperloom::policy {
namespace {

constexpr Rule kRules[] = {
#define HL_RULE(function) rule_##function,
#include "hyperloom/policy/rules.def"
#undef HL_RULE
};

}  // namespace

std::string action_of(const Intent& intent) {
  if (intent.type == "request") return text_of(intent.payload, "kind");
  if (intent.type == "delegate" || intent.type == "propose_action") {
    return text_of(intent.payload, "action_name");
  }
  return intent.type;
}

PolicyGate::PolicyGate(const Environment& environment)
    : strict_phase_(environment.flag("INFERENCE_OPTIMIZER_STRICT_PHASE")),
      strict_paths_(environment.flag("INFERENCE_OPTIMIZER_STRICT_PATHS")) {}

Verdict PolicyGate::judge(const Intent& intent, const Situation& situation) const {
  Verdict verdict;
  for (const Rule rule : kRules) {
    Objection objection = rule(intent, situation);
    if (!objection) continue;
    const bool lenient = (objection->strictness == Strictness::Phase && !strict_phase_) ||
                         (objection->strictness == Strictness::Paths && !strict_paths_);
    if (lenient) {
      verdict.noted.push_back(std::move(objection->denial));
      continue;
    }
    verdict.denial = std::move(objection->denial);
    return verdict;
  }
  return verdict;
}

const std::vector<std::string_view>& PolicyGate::rules() {
  static const std::vector<std::string_view> names = {
#define HL_RULE(function) #function,
#include "hyperloom/policy/rules.def"
#undef HL_RULE
  };
  return names;
}

}  // namespace hyperloom::policy
