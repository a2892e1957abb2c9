// Requests go to the kernel agent and to nobody else.
#include <fmt/format.h>

#include "hyperloom/policy/rules.h"
#include "hyperloom/policy/words.h"

namespace hyperloom::policy {
namespace {

constexpr std::string_view kRule = "request_target";
constexpr std::string_view kMissing = "payload";

}  // namespace

Objection rule_request_target(const Intent& intent, const Situation&) {
  if (intent.type != "request") return std::nullopt;
  const std::string target = text_of(intent.payload, "target_agent");
  if (target.empty()) {
    return object(kMissing, "'target_agent' is empty or no text", "set it to 'kernel_agent'");
  }
  if (target == "kernel_agent") return std::nullopt;
  return object(kRule, fmt::format("'{}' takes no requests", shorten(target)),
                "set 'target_agent' to 'kernel_agent'");
}

}  // namespace hyperloom::policy
