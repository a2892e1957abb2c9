// From the answer of a role's turn to what it causes.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "hyperloom/coordinator/request_flow.h"
#include "hyperloom/policy/gate.h"

namespace hyperloom::coordinator {

// What became of one intent.
struct Handled {
  std::string intent_type;
  std::string action;  // request kind, action name, or the type
  std::string msg_id;  // of the row on the bus, if there is one
  std::optional<policy::Denial> denial;
  std::vector<policy::Denial> noted;
  Json result;  // of a request; null for others
};

struct Outcome {
  std::optional<Error> malformed;  // of the envelope, of which then nothing was executed
  std::vector<Handled> intents;
};

// The founding document's seven steps. One caller at a time; handlers run on its thread. Errors of
// every call are those of bus and state: the session cannot go on.
class IntentRouter {
 public:
  explicit IntentRouter(Services& services);

  // Judges and executes the intents of one turn, in order.
  Result<Outcome> handle(const std::string& role, const Json& envelope);

  // See RequestFlow.
  Result<Json> post_synthesized(const std::string& kind, const Json& params,
                                const std::function<Json(const std::string& request_id)>& run) {
    return flow_.post_synthesized(kind, params, run);
  }
  Result<std::vector<Redispatch>> answer_interrupted() { return flow_.answer_interrupted(); }
  Result<Json> redispatch(const Redispatch& interrupted) { return flow_.redispatch(interrupted); }

 private:
  policy::Situation situation(const std::string& role) const;
  Result<void> deny(const std::string& role, const policy::Intent& intent,
                    const policy::Denial& denial);
  Result<void> note(const std::string& role, const policy::Intent& intent,
                    const policy::Denial& denial);
  Result<void> execute(const std::string& role, const policy::Intent& intent, Handled& handled);
  Result<void> request(const std::string& role, const policy::Intent& intent, Handled& handled);

  Services& services_;
  RequestFlow flow_;
  policy::PolicyGate gate_;
};

}  // namespace hyperloom::coordinator
