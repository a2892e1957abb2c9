// Any bytes: the reader refuses them, or returns entries that lie inside of them.
#include <cstdint>

#include "loom/runtime/parameters/safetensors.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::span file(reinterpret_cast<const std::byte*>(data), size);
  const auto parsed = loom::read_safetensors(file);
  if (!parsed) return 0;
  for (const loom::ParameterEntry& entry : parsed->entries) {
    if (entry.bytes.empty()) continue;
    if (entry.offset > size || entry.bytes.size() > size - entry.offset) __builtin_trap();
    if (entry.bytes.data() != file.data() + entry.offset) __builtin_trap();
    if (entry.element && entry.type().byte_size() != entry.bytes.size()) __builtin_trap();
  }
  return 0;
}
