// What an agent's turn returns: {"intents": [{"intent_type": ..., "payload": {...}}, ...]}.
#pragma once

#include <string>
#include <vector>

#include "hyperloom/core/json.h"

namespace hyperloom::policy {

struct Intent {
  std::string type;  // a row of intents.def
  Json payload;      // an object with the fields that the row requires
};

// All intents, or the first thing that is wrong; nothing of a malformed envelope is executed.
// Errors, which name the entry: "envelope_not_object", "envelope_missing_intents",
// "envelope_intents_not_list", "intent_not_object", "intent_missing_type", "intent_unknown_type",
// "intent_payload_not_object", "intent_missing_field", "intent_conflicting_fields".
Result<std::vector<Intent>> parse_envelope(const Json& envelope);

}  // namespace hyperloom::policy
