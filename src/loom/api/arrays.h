// Arrays outside of modules: their types, elements as numbers, and npy files. What applications
// need that fill and read the storage of bindings.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "loom/api/loom.h"
#include "loom/runtime/parameters/array_text.h"
#include "loom/runtime/parameters/array_type.h"

namespace loom::api {

struct Array {
  ArrayType type;
  std::vector<std::byte> bytes;
};

// An npy file; nothing when it cannot be read, is malformed, or is not of the `expected` type.
std::optional<Array> read_array(const std::string& path, const std::optional<ArrayType>& expected,
                                Messages& messages);

}  // namespace loom::api
