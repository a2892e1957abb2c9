// Any bytes: the reader refuses them, or returns entries that lie inside of them.
#include <cstdint>

#include "loom/runtime/parameters/npy.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::span file(reinterpret_cast<const std::byte*>(data), size);
  const auto array = loom::read_npy(file);
  if (!array) return 0;
  if (array->type.byte_size() != array->bytes.size()) __builtin_trap();
  if (array->offset + array->bytes.size() != size) __builtin_trap();
  return 0;
}
