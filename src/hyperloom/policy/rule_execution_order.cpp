// Without a measured baseline there is nothing to compare with: only the analysis runs.
#include <fmt/format.h>

#include <cmath>

#include "hyperloom/policy/rules.h"
#include "hyperloom/policy/words.h"

namespace hyperloom::policy {
namespace {

constexpr std::string_view kRule = "execution_order";

}  // namespace

Objection rule_execution_order(const Intent& intent, const Situation& situation) {
  if (intent.type != "request") return std::nullopt;
  const std::string kind = text_of(intent.payload, "kind");
  const bool measured = std::isfinite(situation.baseline_tput) && situation.baseline_tput > 0;
  if (measured || kind == "trace_analyze") return std::nullopt;
  return object(kRule,
                fmt::format("'{}' was requested before a baseline was measured", shorten(kind)),
                "wait for the baseline of PRELUDE; 'trace_analyze' needs none");
}

}  // namespace hyperloom::policy
