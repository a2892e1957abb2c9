// Reads arbitrary bytes as a compile report; what is accepted must write, show and compare.
#include <cstdlib>

#include "loom/report/report_diff.h"
#include "loom/report/report_text.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  loom::Diagnostics diagnostics;
  const auto report = loom::read_report(text, "fuzz.json", diagnostics);
  if (!report) {
    if (!diagnostics.has_errors()) std::abort();
    return 0;
  }
  const std::string written = loom::write_report(*report);
  const auto again = loom::read_report(written, "again.json", diagnostics);
  if (!again || loom::write_report(*again) != written) std::abort();
  (void)loom::report_text(*report);
  if (report->entries.size() > 1) {
    const auto diff = loom::diff_reports(*again, *again, {}, diagnostics);
    if (diff && !diff->empty()) std::abort();
    if (diff) (void)(loom::diff_text(*diff) + loom::diff_json(*diff));
  }
  return 0;
}
