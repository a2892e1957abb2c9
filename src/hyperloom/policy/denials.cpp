#include "hyperloom/policy/denials.h"

#include "hyperloom/core/time.h"
#include "hyperloom/policy/words.h"

namespace hyperloom::policy {
namespace {

constexpr size_t kHistory = 200;
constexpr size_t kStreaks = 200;

}  // namespace

void record_denial(Json& state, const std::string& role, const Intent& intent,
                   const Denial& denial) {
  Json& history = state["policy_denial_history"];
  if (!history.is_array()) history = Json::array();
  const double last = history.empty() ? 0 : number_of(history.back(), "seq");
  // An action is a text that a role wrote.
  const std::string action = shorten(action_of(intent));
  history.push_back({{"seq", static_cast<int64_t>(last) + 1},
                     {"ts", utc_now()},
                     {"role", shorten(role)},
                     {"intent_type", intent.type},
                     {"action", action},
                     {"rule", denial.rule},
                     {"reason", denial.reason},
                     {"hint", denial.hint}});
  if (history.size() > kHistory) history.erase(history.begin());
  Json& streaks = state["policy_denial_streaks"];
  if (!streaks.is_object()) streaks = Json::object();
  const std::string key = action + ":" + denial.rule;
  if (!streaks.contains(key) && streaks.size() >= kStreaks) streaks.erase(streaks.begin());
  streaks[key] = static_cast<int64_t>(number_of(streaks, key)) + 1;
}

bool has_streak(const Json& streaks, const std::string& action) {
  if (!streaks.is_object()) return false;
  const std::string prefix = shorten(action) + ":";
  for (const auto& [key, count] : streaks.items()) {
    if (key.starts_with(prefix)) return true;
  }
  return false;
}

void end_streaks(Json& state, const std::string& action) {
  Json& streaks = state["policy_denial_streaks"];
  if (!streaks.is_object()) return;
  const std::string prefix = shorten(action) + ":";
  for (auto row = streaks.begin(); row != streaks.end();) {
    row = row.key().starts_with(prefix) ? streaks.erase(row) : std::next(row);
  }
}

Json open_denials(const Json& state, const std::string& role) {
  const double seen = number_of(value_of(state, "policy_denials_seen"), role);
  Json open = Json::array();
  for (const Json& row : value_of(state, "policy_denial_history")) {
    if (text_of(row, "role") == role && number_of(row, "seq") > seen) open.push_back(row);
  }
  return open;
}

void complete_turn(Json& state, const std::string& role, const Json& shown) {
  if (!shown.is_array() || shown.empty()) return;
  state["policy_denials_seen"][role] = value_of(shown.back(), "seq");
}

std::optional<bus::Message> denial_message(const std::string& role, const Intent& intent,
                                           const Denial& denial) {
  if (denial.rule == "execution_order" || role.empty()) return std::nullopt;
  bus::Message message;
  message.from_agent = "coordinator";
  message.to_agent = role;
  message.topic = "observation";
  message.priority = 0;
  message.payload = {{"kind", "policy_denied"},
                     {"intent_type", intent.type},
                     {"rule", denial.rule},
                     {"hint", denial.hint},
                     {"reason", denial.reason}};
  return message;
}

}  // namespace hyperloom::policy
