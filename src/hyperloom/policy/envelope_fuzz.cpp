// Reads arbitrary text as the answer of a turn; every intent of an accepted one is complete.
#include <cstdlib>

#include "hyperloom/policy/envelope.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto document = hyperloom::parse_json(text, "fuzz.json");
  if (!document) return 0;
  const auto intents = hyperloom::policy::parse_envelope(*document);
  if (!intents) {
    if (intents.error().error_class.empty() || intents.error().message.size() > 1000) std::abort();
    return 0;
  }
  for (const auto& intent : *intents) {
    if (intent.type.empty() || !intent.payload.is_object()) std::abort();
  }
  return 0;
}
