// The same work is not started twice.
#include <fmt/format.h>

#include "hyperloom/policy/rules.h"
#include "hyperloom/policy/words.h"

namespace hyperloom::policy {
namespace {

constexpr std::string_view kRule = "duplicate_idempotency_key";
constexpr std::string_view kRunningRule = "duplicate_idempotency_key_running";

}  // namespace

Objection rule_duplicate_idempotency_key(const Intent& intent, const Situation& situation) {
  const bool task = intent.type == "delegate" || intent.type == "propose_action";
  const std::string key = text_of(intent.payload, "idempotency_key");
  if (!task || key.empty() || !situation.task_state) return std::nullopt;
  const std::string state = situation.task_state(key);
  if (state.empty()) return std::nullopt;
  const bool open = state == "queued" || state == "running";
  return object(open ? kRunningRule : kRule,
                fmt::format("the task with key '{}' is {} already", shorten(key), state),
                open ? "wait for its result" : "use its result, or another key for other work");
}

}  // namespace hyperloom::policy
