// Leases and branches are robustness's to extend and to prune.
#include <fmt/format.h>

#include "hyperloom/policy/rules.h"

namespace hyperloom::policy {
namespace {

constexpr std::string_view kRule = "robustness_only_source";

}  // namespace

Objection rule_robustness_only_source(const Intent& intent, const Situation& situation) {
  const bool owned = intent.type == "extend_lease" || intent.type == "prune_branch";
  if (!owned || situation.role == "robustness") return std::nullopt;
  return object(kRule, fmt::format("'{}' came from {}", intent.type, situation.role),
                "leave it to robustness, or alert it");
}

}  // namespace hyperloom::policy
