#include <cstddef>
#include <cstdint>
#include <string_view>

#include "hyperloom/trace/candidates.h"
#include "hyperloom/trace/chrome.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto dispatches = hyperloom::trace::parse_trace(text, "trace")) {
    (void)hyperloom::trace::candidates(*dispatches, {});
  }
  return 0;
}
