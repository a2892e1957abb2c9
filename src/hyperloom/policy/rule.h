// What a rule of the gate sees and says.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "hyperloom/core/json.h"
#include "hyperloom/policy/envelope.h"
#include "hyperloom/session/layout.h"

namespace hyperloom::policy {

namespace fs = std::filesystem;

// The state of the session that rules judge by: a copy, taken when the intent came.
struct Situation {
  std::string role;   // who emitted the intent
  std::string phase;  // "PRELUDE", "KERNEL_AGENT", ...
  double baseline_tput = 0;
  bool closing = false;           // only the report is still to come
  double seconds_left = 1e9;      // of the session
  bool explore_enabled = true;    // not --no-explore
  bool command_line = false;      // the role speaks for whoever typed the request
  std::set<std::string> kinds;    // registered request kinds
  session::Layout layout;         // of this session
  std::vector<fs::path> trusted;  // the workload's tree, then the framework roots
  // The state of the task with this idempotency key, or "".
  std::function<std::string(const std::string& key)> task_state;
};

struct Denial {
  std::string rule;
  std::string reason;  // what was seen
  std::string hint;    // what to do instead
  bool operator==(const Denial&) const = default;
};

// Whether a denial of the rule is one only under a strict setting, and noted otherwise.
enum class Strictness : uint8_t { Always, Phase, Paths };

struct Judgement {
  Denial denial;
  Strictness strictness = Strictness::Always;
};
// Nothing: the rule has no objection.
using Objection = std::optional<Judgement>;
using Rule = Objection (*)(const Intent&, const Situation&);

inline Objection object(std::string_view rule, std::string reason, std::string hint = "",
                        Strictness strictness = Strictness::Always) {
  return Judgement{{std::string(rule), std::move(reason), std::move(hint)}, strictness};
}

// The action that an intent asks for: the kind of a request, the name of a delegated or proposed
// action, else the type itself.
std::string action_of(const Intent& intent);

}  // namespace hyperloom::policy
