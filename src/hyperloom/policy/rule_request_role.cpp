// Only orchestration asks the kernel agent for something.
#include <fmt/format.h>

#include "hyperloom/policy/rules.h"

namespace hyperloom::policy {
namespace {

constexpr std::string_view kRule = "request_role";

}  // namespace

Objection rule_request_role(const Intent& intent, const Situation& situation) {
  if (intent.type != "request" || situation.role == "orchestration") return std::nullopt;
  return object(kRule, fmt::format("{} may not request", situation.role),
                "send orchestration a message that says what is needed");
}

}  // namespace hyperloom::policy
