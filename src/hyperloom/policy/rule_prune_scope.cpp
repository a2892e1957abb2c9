// What is pruned is a family of work or what of it is queued.
#include <fmt/format.h>

#include "hyperloom/policy/rules.h"
#include "hyperloom/policy/words.h"

namespace hyperloom::policy {
namespace {

constexpr std::string_view kRule = "prune_scope";

}  // namespace

Objection rule_prune_scope(const Intent& intent, const Situation&) {
  if (intent.type != "prune_branch") return std::nullopt;
  const Json& scope = value_of(intent.payload, "scope");
  if (scope.is_null() || scope == "family" || scope == "queued") return std::nullopt;
  return object(kRule, fmt::format("'scope' is {}", shorten(compact(scope))),
                "set it to 'family' or 'queued'");
}

}  // namespace hyperloom::policy
