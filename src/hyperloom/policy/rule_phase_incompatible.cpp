// An action, or the action that a registered kind stands for, outside of its phases.
#include <fmt/format.h>

#include <algorithm>

#include "hyperloom/policy/rules.h"
#include "hyperloom/policy/words.h"

namespace hyperloom::policy {
namespace {

constexpr std::string_view kRule = "phase_incompatible";

struct Row {
  std::string_view name;
  std::string_view words;
};
constexpr Row kActions[] = {
#define HL_ACTION(name, phases) {name, phases},
#include "hyperloom/policy/actions.def"
#undef HL_ACTION
};
// The action that a request kind stands for. Kinds without a row, such as trace_analyze, stand for
// none and belong to every phase.
constexpr Row kOwnedActions[] = {{"run_optimization", "kernel_opt"},
                                 {"run_gemm_tuning", "gemm_tuning"},
                                 {"integrate", "integrate"},
                                 {"apply_patch", "integrate"}};

std::string_view owned_action(const Intent& intent, const Situation& situation) {
  const std::string kind = text_of(intent.payload, "kind");
  if (!situation.kinds.contains(kind)) return "";
  const auto* row = std::ranges::find(kOwnedActions, std::string_view(kind), &Row::name);
  return row == std::end(kOwnedActions) ? "" : row->words;
}

}  // namespace

Objection rule_phase_incompatible(const Intent& intent, const Situation& situation) {
  std::string action;
  if (intent.type == "request") {
    action = owned_action(intent, situation);
  } else if (intent.type == "delegate" || intent.type == "propose_action") {
    action = action_of(intent);
  }
  const auto* row = std::ranges::find(kActions, std::string_view(action), &Row::name);
  if (row == std::end(kActions)) return std::nullopt;
  if (row->words == "*" || has_word(row->words, situation.phase)) return std::nullopt;
  return object(kRule, fmt::format("'{}' came in phase {}", action_of(intent), situation.phase),
                fmt::format("it belongs to: {}", row->words), Strictness::Phase);
}

}  // namespace hyperloom::policy
