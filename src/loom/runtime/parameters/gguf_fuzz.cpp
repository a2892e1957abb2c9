// Any bytes: the reader refuses them, or returns entries that lie inside of them.
#include <cstdint>

#include "loom/runtime/parameters/check_entries.h"
#include "loom/runtime/parameters/gguf.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::span file(reinterpret_cast<const std::byte*>(data), size);
  if (const auto parsed = loom::read_gguf(file)) loom::check_entries(*parsed, file);
  return 0;
}
