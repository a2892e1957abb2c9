// What the state keeps of intents that were denied.
#pragma once

#include <string>

#include "hyperloom/bus/bus.h"
#include "hyperloom/core/json.h"
#include "hyperloom/policy/rule.h"

namespace hyperloom::policy {

// Appends to `policy_denial_history` (the newest 200: {seq, ts, role, intent_type, action, rule,
// reason, hint}) and counts the streak `action:rule` of `policy_denial_streaks` up. Called inside
// SharedState::update.
void record_denial(Json& state, const std::string& role, const Intent& intent,
                   const Denial& denial);
// Whether the action has a streak.
bool has_streak(const Json& streaks, const std::string& action);
// An intent that passed ends the streaks of its action.
void end_streaks(Json& state, const std::string& action);

// The rows of the role that are newer than its last completed turn, oldest first.
Json open_denials(const Json& state, const std::string& role);
// Says that a turn of the role, which was shown its denials, is completed. The number of the newest
// row it was shown is in `policy_denials_seen`.
void complete_turn(Json& state, const std::string& role, const Json& shown);

// The observation that tells the role, or nothing for a rule that leaves no row of any kind.
std::optional<bus::Message> denial_message(const std::string& role, const Intent& intent,
                                           const Denial& denial);

}  // namespace hyperloom::policy
