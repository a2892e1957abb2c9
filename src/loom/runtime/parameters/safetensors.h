// safetensors: an 8-byte header length, a JSON header, then the data without holes.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "loom/runtime/parameters/parameter_entry.h"

namespace loom {

// The format has no magic; true when the length and the first character of the header fit.
bool is_safetensors(std::span<const std::byte> file);

// Copies no tensor data. Type, shape and data_offsets must agree, and the tensors must cover the
// data exactly: no overlap, no hole, nothing behind them. Unknown or repeated keys are errors.
FormatResult<ParsedFile> read_safetensors(std::span<const std::byte> file);

// Equal input gives equal bytes. Arrays stand in the order of their element size, largest first, so
// that each is aligned to its elements; the header is padded until the data begins at a multiple of
// 64. Fails for two equal names and for the name `__metadata__`.
FormatResult<std::string> write_safetensors(std::span<const ParameterSource> arrays);

}  // namespace loom
