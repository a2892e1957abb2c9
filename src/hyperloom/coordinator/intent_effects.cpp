#include "hyperloom/coordinator/intent_effects.h"

#include <fmt/format.h>

#include <algorithm>

#include "hyperloom/policy/words.h"

namespace hyperloom::coordinator {
namespace {

constexpr size_t kLargestChange = 64 * 1024;
// A role says something; it neither asks, answers nor decides with a message.
constexpr std::string_view kMessageTopics = "observation advice alert historical_warning heartbeat";

struct Row {
  std::string_view type;
  const char* topic;
  int priority;
};
constexpr Row kRows[] = {{"delegate", "proposal", 1},
                         {"propose_action", "proposal", 1},
                         {"update_state", "intent_emitted", 2},
                         {"alert", "alert", 0},
                         {"response", "response", 1},
                         {"review_verdict", "review_verdict", 1},
                         {"extend_lease", "intent_emitted", 1},
                         {"prune_branch", "event", 1},
                         {"escalate_strategy_change", "strategy_change", 1},
                         {"specialist_done", "delegated_result", 1}};

policy::Denial payload_denial(std::string reason, std::string hint) {
  return {"payload", std::move(reason), std::move(hint)};
}

}  // namespace

bus::Message message_of(const std::string& role, const policy::Intent& intent) {
  bus::Message message;
  message.from_agent = role;
  message.to_agent = text_of(intent.payload, "to_agent", "*");
  if (message.to_agent.empty()) message.to_agent = "*";
  message.topic = text_of(intent.payload, "topic", "observation");
  const auto* row = std::ranges::find(kRows, std::string_view(intent.type), &Row::type);
  if (row != std::end(kRows)) {
    message.topic = row->topic;
    message.priority = row->priority;
  }
  if (intent.type == "response") message.in_reply_to = text_of(intent.payload, "in_reply_to");
  if (intent.type == "review_verdict") {
    message.in_reply_to = text_of(intent.payload, "target_proposal_msg_id");
  }
  message.payload = intent.payload;
  message.payload["intent_type"] = intent.type;
  return message;
}

std::optional<policy::Denial> refuse_content(Services& services, const policy::Intent& intent) {
  if (intent.type == "send_message" &&
      !policy::has_word(kMessageTopics, text_of(intent.payload, "topic"))) {
    return payload_denial(fmt::format("'{}' is no topic of a message",
                                      policy::shorten(compact(intent.payload.at("topic")))),
                          fmt::format("use one of: {}", kMessageTopics));
  }
  if (intent.type == "response") {
    const auto asked = services.bus.lookup(text_of(intent.payload, "in_reply_to"));
    if (asked && *asked && (*asked)->topic == "request") {
      return payload_denial("a request was answered by a role",
                            "requests are answered by the kernel agent");
    }
  }
  if (intent.type == "update_state" &&
      compact(intent.payload.at("changes")).size() > kLargestChange) {
    return payload_denial(fmt::format("'changes' is larger than {} bytes", kLargestChange),
                          "keep notes short");
  }
  return std::nullopt;
}

Result<void> take_effect(Services& services, const policy::Intent& intent) {
  if (intent.type == "update_state") {
    return services.session.state().update("intent.update_state", [&](Json& state) {
      for (const auto& [field, value] : intent.payload.at("changes").items()) state[field] = value;
    });
  }
  if (intent.type == "extend_lease") {
    const auto extended = services.tasks.extend(text_of(intent.payload, "task_id"),
                                                intent.payload.at("extra_sec").get<int64_t>());
    // That there is no such task, or that it has ended, is the role's mistake and stops nothing.
    if (!extended && extended.error().error_class == "database") return extended;
  }
  if (intent.type == "prune_branch") {
    auto queued = services.tasks.in_state("queued");
    if (!queued) return std::unexpected(queued.error());
    for (const bus::Task& task : *queued) {
      if (task.kind != text_of(intent.payload, "family")) continue;
      const auto cancelled = services.tasks.transition(
          task.task_id, "cancelled", {{"reason", value_of(intent.payload, "reason")}});
      if (!cancelled && cancelled.error().error_class == "database") {
        return std::unexpected(cancelled.error());
      }
    }
  }
  return {};
}

}  // namespace hyperloom::coordinator
