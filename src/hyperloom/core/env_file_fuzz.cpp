// Reads arbitrary text as a .env file; values stay of the size of what they were made of.
#include <cstdlib>

#include "hyperloom/core/env_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using Variables = std::map<std::string, std::string>;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const hyperloom::Environment environment(Variables{{"HOME", "/home"}});
  const auto variables = hyperloom::parse_env_file(text, "fuzz.env", environment);
  if (!variables) {
    if (variables.error().message.rfind("fuzz.env:", 0) != 0) std::abort();
    return 0;
  }
  for (const auto& [name, value] : *variables) {
    if (name.empty() || name.find('=') != std::string::npos) std::abort();
  }
  return 0;
}
