// A recovery says what it saw.
#include "hyperloom/policy/rules.h"

namespace hyperloom::policy {
namespace {

constexpr std::string_view kRule = "delegate_action_evidence";

}  // namespace

Objection rule_delegate_action_evidence(const Intent& intent, const Situation&) {
  const bool task = intent.type == "delegate" || intent.type == "propose_action";
  if (!task || action_of(intent) != "recover") return std::nullopt;
  const Json& evidence = value_of(intent.payload, "evidence");
  const bool says_nothing = evidence.is_null() || evidence == "" || evidence == Json::array() ||
                            evidence == Json::object();
  if (!says_nothing) return std::nullopt;
  return object(kRule, "'recover' came without evidence", "fill the field 'evidence'");
}

}  // namespace hyperloom::policy
