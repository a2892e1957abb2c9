// A lease is extended by 1 to 3600 seconds.
#include <fmt/format.h>

#include "hyperloom/policy/rules.h"
#include "hyperloom/policy/words.h"

namespace hyperloom::policy {
namespace {

constexpr std::string_view kRule = "extend_lease_bounds";

}  // namespace

Objection rule_extend_lease_bounds(const Intent& intent, const Situation&) {
  if (intent.type != "extend_lease") return std::nullopt;
  const Json& extra = value_of(intent.payload, "extra_sec");
  if (extra.is_number_integer() && extra >= 1 && extra <= 3600) return std::nullopt;
  return object(kRule, fmt::format("'extra_sec' is {}", shorten(compact(extra))),
                "set it to an integer of 1 to 3600");
}

}  // namespace hyperloom::policy
