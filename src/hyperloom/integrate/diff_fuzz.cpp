// Reads arbitrary text as a diff; what is read must be files that a diff of them names again.
#include <cstdlib>

#include "hyperloom/integrate/diff.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace hyperloom::integrate;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto entries = parse_diff(text, "fuzz.diff");
  if (entries && entries->empty()) std::abort();
  // The input as the two sides of a file, split at its middle.
  const std::string diff =
      write_diff("x", DiffSide{text.substr(0, size / 2)}, DiffSide{text.substr(size / 2)});
  if (diff.empty()) return 0;
  const auto again = parse_diff(diff, "again.diff");
  if (!again || again->size() != 1 || again->front().path != "x") std::abort();
  return 0;
}
