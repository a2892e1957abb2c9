// Parses arbitrary text as JSON; what is accepted must print as text that reads back the same.
#include <cstdlib>

#include "hyperloom/core/json.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto document = hyperloom::parse_json(text, "fuzz.json");
  if (!document) {
    if (document.error().message.rfind("fuzz.json:", 0) != 0) std::abort();
    return 0;
  }
  for (const std::string& printed : {hyperloom::compact(*document), hyperloom::pretty(*document)}) {
    const auto again = hyperloom::parse_json(printed, "again.json");
    if (!again || hyperloom::compact(*again) != hyperloom::compact(*document)) std::abort();
  }
  return 0;
}
