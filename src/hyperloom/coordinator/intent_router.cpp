#include "hyperloom/coordinator/intent_router.h"

#include "hyperloom/coordinator/intent_effects.h"
#include "hyperloom/policy/denials.h"

namespace hyperloom::coordinator {

IntentRouter::IntentRouter(Services& services)
    : services_(services), flow_(services), gate_(services.environment) {}

policy::Situation IntentRouter::situation(const std::string& role) const {
  policy::Situation situation;
  situation.role = role;
  situation.phase = services_.phase();
  const Json baseline = services_.session.state().get("baseline_tput");
  situation.baseline_tput = baseline.is_number() ? baseline.get<double>() : 0;
  situation.closing = services_.closing && services_.closing();
  if (services_.seconds_left) situation.seconds_left = services_.seconds_left();
  situation.explore_enabled = services_.explore_enabled;
  situation.command_line = services_.command_line;
  situation.kinds = registered_kinds();
  situation.layout = services_.session.layout();
  situation.trusted = services_.trusted;
  situation.task_state = [this](const std::string& key) {
    const auto task = services_.tasks.find_by_key(key);
    return task && *task ? (*task)->state : std::string();
  };
  return situation;
}

Result<void> IntentRouter::deny(const std::string& role, const policy::Intent& intent,
                                const policy::Denial& denial) {
  auto recorded = services_.session.state().update(
      "intent.deny", [&](Json& state) { policy::record_denial(state, role, intent, denial); });
  if (!recorded) return recorded;
  auto message = policy::denial_message(role, intent, denial);
  if (!message) return {};
  auto appended = services_.bus.append(std::move(*message));
  if (!appended) return std::unexpected(appended.error());
  return {};
}

Result<void> IntentRouter::note(const std::string& role, const policy::Intent& intent,
                                const policy::Denial& denial) {
  auto message = policy::denial_message(role, intent, denial);
  if (!message) return {};
  message->payload["kind"] = "policy_noted";
  message->priority = 1;
  auto appended = services_.bus.append(std::move(*message));
  if (!appended) return std::unexpected(appended.error());
  return {};
}

Result<void> IntentRouter::request(const std::string& role, const policy::Intent& intent,
                                   Handled& handled) {
  bus::Message message;
  message.from_agent = role;
  message.to_agent = text_of(intent.payload, "target_agent");
  message.topic = "request";
  message.payload = intent.payload;
  // Which rows are the coordinator's own, and which are second tries, no role can say.
  message.payload.erase("source");
  message.payload.erase("redispatch_of");
  auto appended = services_.bus.append(std::move(message));
  if (!appended) return std::unexpected(appended.error());
  handled.msg_id = appended->msg_id;
  auto result = flow_.answer(
      {appended->msg_id, role, appended->to_agent, handled.action, appended->payload, ""});
  if (!result) return std::unexpected(result.error());
  handled.result = std::move(*result);
  return {};
}

Result<void> IntentRouter::execute(const std::string& role, const policy::Intent& intent,
                                   Handled& handled) {
  policy::Verdict verdict = gate_.judge(intent, situation(role));
  if (!verdict.denial) verdict.denial = refuse_content(services_, intent);
  handled.denial = verdict.denial;
  if (verdict.denial) return deny(role, intent, *verdict.denial);
  for (const policy::Denial& denial : verdict.noted) {
    if (auto noted = note(role, intent, denial); !noted) return noted;
  }
  handled.noted = std::move(verdict.noted);
  const Json streaks = services_.session.state().get("policy_denial_streaks");
  if (policy::has_streak(streaks, handled.action)) {
    auto ended = services_.session.state().update(
        "intent.pass", [&](Json& state) { policy::end_streaks(state, handled.action); });
    if (!ended) return ended;
  }
  if (intent.type == "request") return request(role, intent, handled);
  auto appended = services_.bus.append(message_of(role, intent));
  if (!appended) return std::unexpected(appended.error());
  handled.msg_id = appended->msg_id;
  if (auto done = take_effect(services_, intent); !done) return done;
  if (services_.on_intent) services_.on_intent(role, intent);
  return {};
}

Result<Outcome> IntentRouter::handle(const std::string& role, const Json& envelope) {
  Outcome outcome;
  auto intents = policy::parse_envelope(envelope);
  if (!intents) {
    bus::Message message;
    message.from_agent = "coordinator";
    message.to_agent = role.empty() ? "*" : role;
    message.topic = "observation";
    message.priority = 0;
    message.payload = {{"kind", "envelope_rejected"},
                       {"error_class", intents.error().error_class},
                       {"error", intents.error().message},
                       {"hint", intents.error().hint}};
    auto appended = services_.bus.append(std::move(message));
    if (!appended) return std::unexpected(appended.error());
    outcome.malformed = intents.error();
    return outcome;
  }
  for (const policy::Intent& intent : *intents) {
    Handled handled;
    handled.intent_type = intent.type;
    handled.action = policy::action_of(intent);
    if (auto done = execute(role, intent, handled); !done) return std::unexpected(done.error());
    outcome.intents.push_back(std::move(handled));
  }
  return outcome;
}

}  // namespace hyperloom::coordinator
