// Lanes that the coordinator starts itself at KERNEL entry, with their gates and accounts.
#include <fmt/format.h>

#include "hyperloom/policy/rules.h"
#include "hyperloom/policy/words.h"

namespace hyperloom::policy {
namespace {

constexpr std::string_view kRule = "phase_incompatible";
constexpr std::string_view kOwned = "run_fusion run_collective";

}  // namespace

Objection rule_coordinator_owned_kind(const Intent& intent, const Situation&) {
  if (intent.type != "request" || !has_word(kOwned, text_of(intent.payload, "kind"))) {
    return std::nullopt;
  }
  return object(kRule, fmt::format("'{}' is started by the coordinator alone", action_of(intent)),
                "its result comes to the inbox when the lane has run");
}

}  // namespace hyperloom::policy
