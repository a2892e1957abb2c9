// Reads arbitrary bytes as a `.loomcmd`; what is accepted must print and write back to itself.
#include <cstdlib>

#include "loom/command/artifact.h"
#include "loom/command/cmd_core.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  loom::SourceFiles files;
  loom::Diagnostics diagnostics;
  const auto plan = loom::read_artifact(files, bytes, "fuzz.loomcmd", diagnostics);
  if (!plan) {
    if (!diagnostics.has_errors()) std::abort();
    return 0;
  }
  (void)loom::cmd_core_text(*plan, plan->programs[0]);
  const std::string again = loom::write_artifact(*plan, plan->programs[0]);
  loom::Diagnostics second;
  if (!loom::read_artifact(files, again, "again.loomcmd", second)) std::abort();
  return 0;
}
