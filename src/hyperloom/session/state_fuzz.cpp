// Reads arbitrary text as state.json and as manifest.json; what is accepted must read back as it is
// written.
#include <cstdlib>

#include "hyperloom/session/session.h"

namespace hyperloom::session {
namespace {

using Parser = Result<Json> (*)(std::string_view, const std::string&);

void round_trip(Parser parse, std::string_view text) {
  const auto document = parse(text, "fuzz.json");
  if (!document) {
    if (document.error().message.empty() || document.error().error_class.empty()) std::abort();
    return;
  }
  const auto again = parse(pretty(*document), "again.json");
  if (!again || pretty(*again) != pretty(*document)) std::abort();
}

}  // namespace
}  // namespace hyperloom::session

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  hyperloom::session::round_trip(hyperloom::session::parse_state, text);
  hyperloom::session::round_trip(hyperloom::session::parse_manifest, text);
  return 0;
}
