// One named array in a parameter file, and what a reader of one format returns.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <expected>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "loom/runtime/parameters/array_type.h"

namespace loom {

enum class FileFormat : uint8_t { Gguf, Safetensors, Npy };
std::string_view format_name(FileFormat format);  // "GGUF", "safetensors", "npy"

// Views into the file it came from; valid as long as that.
struct ParameterEntry {
  std::string_view name;
  std::optional<ElementType> element;  // nothing for block formats and others Loom cannot read
  std::string_view type_name;          // "f32", or the file's own name such as "Q4_K"
  std::vector<uint64_t> dims;          // outermost first, whatever order the file uses
  std::span<const std::byte> bytes;
  uint64_t offset = 0;  // of the bytes, from the start of the file

  // Only with an element type.
  ArrayType type() const { return {*element, dims}; }
};

struct ParsedFile {
  FileFormat format;
  uint32_t version = 0;                 // of the format; 0 where it has none
  std::vector<ParameterEntry> entries;  // in the order of the header
  std::deque<std::string> names;        // owns the names that are not in the file byte for byte
};

// What is wrong with a file, and where it says so.
struct FormatError {
  std::string detail;
  std::optional<uint64_t> offset;  // in bytes from the start of the file

  std::string text() const;  // "detail (at byte 12)"
};
template <class T>
using FormatResult = std::expected<T, FormatError>;

// One array to write. The bytes are row major and little endian.
struct ParameterSource {
  std::string name;
  ArrayType type;
  std::span<const std::byte> bytes;  // type.byte_size() of them
};

// Names are stored as they are, so both directions ask for valid UTF-8, at most 64 KiB of it.
bool is_valid_name(std::string_view name);

}  // namespace loom
