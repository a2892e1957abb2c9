// What a parameter file holds, as a table for people or as JSON for programs.
#pragma once

#include <span>
#include <string>

#include "loom/runtime/parameters/parameter_file.h"

namespace loom {

// One heading and one table a file. ALIGN is the largest power of two that divides the offset, at
// most 4096.
std::string list_as_text(std::span<const ParameterFile> files);
// One array of objects: file, format, version, bytes, parameters (name, type, shape, bytes, offset,
// alignment). Two spaces of indent, ended by a newline.
std::string list_as_json(std::span<const ParameterFile> files);

}  // namespace loom
