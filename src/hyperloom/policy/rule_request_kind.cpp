// A request says what it wants.
#include "hyperloom/policy/rules.h"

namespace hyperloom::policy {
namespace {

constexpr std::string_view kRule = "payload";

}  // namespace

Objection rule_request_kind(const Intent& intent, const Situation&) {
  if (intent.type != "request" || !text_of(intent.payload, "kind").empty()) return std::nullopt;
  return object(kRule, "'kind' is empty or no text");
}

}  // namespace hyperloom::policy
