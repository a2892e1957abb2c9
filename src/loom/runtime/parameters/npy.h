// npy, versions 1 to 3: one array of numbers.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "loom/runtime/parameters/parameter_entry.h"

namespace loom {

struct NpyArray {
  ArrayType type;
  std::span<const std::byte> bytes;  // a view into the file
  uint32_t version = 1;
  uint64_t offset = 0;  // of the bytes
};

bool is_npy(std::span<const std::byte> file);

// Copies no data. Fortran order, big-endian elements, and types without an ElementType are refused.
FormatResult<NpyArray> read_npy(std::span<const std::byte> file);

// Version 1 (2 when the shape needs a longer header); the data begins at a multiple of 64. Fails
// for bf16 and the f8 types, which the format has no name for.
FormatResult<std::string> write_npy(const ArrayType& type, std::span<const std::byte> bytes);

}  // namespace loom
