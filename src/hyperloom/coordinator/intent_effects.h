// What intents other than requests do.
#pragma once

#include <optional>
#include <string>

#include "hyperloom/coordinator/services.h"
#include "hyperloom/policy/rule.h"

namespace hyperloom::coordinator {

// The row that records the intent for everyone whom it concerns.
bus::Message message_of(const std::string& role, const policy::Intent& intent);

// What only the content of bus and state can refuse: a message of a topic that is not a role's, an
// answer to a request, changes that are too large.
std::optional<policy::Denial> refuse_content(Services& services, const policy::Intent& intent);

// Changes state and tasks as the intent asks. Errors: those of state and tasks.
Result<void> take_effect(Services& services, const policy::Intent& intent);

}  // namespace hyperloom::coordinator
