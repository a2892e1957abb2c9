// Kernel work is requested of the kernel agent, never handed out as a task.
#include <fmt/format.h>

#include "hyperloom/policy/rules.h"
#include "hyperloom/policy/words.h"

namespace hyperloom::policy {
namespace {

constexpr std::string_view kRule = "kernel_owned_by_kernel_agent";
constexpr std::string_view kOwned = "kernel_opt integrate gemm_tuning";

}  // namespace

Objection rule_kernel_owned_by_kernel_agent(const Intent& intent, const Situation&) {
  const bool task = intent.type == "delegate" || intent.type == "propose_action";
  if (!task || !has_word(kOwned, action_of(intent))) return std::nullopt;
  return object(kRule, fmt::format("'{}' belongs to the kernel agent", action_of(intent)),
                "emit a request to 'kernel_agent' with the kind of that work");
}

}  // namespace hyperloom::policy
