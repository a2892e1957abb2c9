// GGUF, versions 2 and 3, little endian.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "loom/runtime/parameters/parameter_entry.h"

namespace loom {

bool is_gguf(std::span<const std::byte> file);

// Copies no tensor data. Metadata is validated and skipped, except that `general.alignment` places
// the tensors. Every count, offset and size is checked against the file; two tensors neither share
// a name nor bytes.
FormatResult<ParsedFile> read_gguf(std::span<const std::byte> file);

// Version 3 with an alignment of 32 and no other metadata; equal input gives equal bytes. Fails for
// an element type or a rank (more than 4) that GGUF has no room for, and for two equal names.
FormatResult<std::string> write_gguf(std::span<const ParameterSource> arrays);

}  // namespace loom
