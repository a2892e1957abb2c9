// Any bytes: the reader refuses them with a diagnostic, or returns a module that can be verified,
// written and read again. Hashes are not checked, so that mutations reach the decoder.
#include <cstdint>

#include "loom/bytecode/bytecode.h"
#include "loom/dialect/verify.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  loom::SourceFiles files;
  loom::Diagnostics diagnostics;
  std::string bytes(reinterpret_cast<const char*>(data), size);
  auto module = loom::read_bytecode(files, std::move(bytes), "fuzz.loombc", diagnostics,
                                    {.check_hashes = false});
  if (module.has_value() == diagnostics.has_errors()) __builtin_trap();
  if (!module) return 0;
  const std::string written = loom::write_bytecode(*module);
  auto again = loom::read_bytecode(files, written, "again.loombc", diagnostics);
  if (!again || loom::write_bytecode(*again) != written) __builtin_trap();
  loom::verify_module(*module, diagnostics);
  return 0;
}
