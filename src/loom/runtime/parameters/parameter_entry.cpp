#include "loom/runtime/parameters/parameter_entry.h"

#include <fmt/format.h>

namespace loom {
namespace {

// The length of the UTF-8 character at the front, 0 when it is malformed.
size_t utf8_length(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return 1;
  const size_t length = first < 0xc2   ? 0
                        : first < 0xe0 ? 2
                        : first < 0xf0 ? 3
                        : first < 0xf5 ? 4
                                       : 0;
  if (length == 0 || text.size() < length) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  const bool overlong = (first == 0xe0 && byte(1) < 0xa0) || (first == 0xf0 && byte(1) < 0x90);
  const bool surrogate = first == 0xed && byte(1) >= 0xa0;
  const bool too_large = first == 0xf4 && byte(1) >= 0x90;
  return overlong || surrogate || too_large ? 0 : length;
}

}  // namespace

std::string_view format_name(FileFormat format) {
  switch (format) {
    case FileFormat::Gguf:
      return "GGUF";
    case FileFormat::Safetensors:
      return "safetensors";
    default:
      return "npy";
  }
}

std::string FormatError::text() const {
  return offset ? fmt::format("{} (at byte {})", detail, *offset) : detail;
}

bool is_valid_name(std::string_view name) {
  constexpr size_t kLongestName = 64 * 1024;
  if (name.size() > kLongestName) return false;
  while (!name.empty()) {
    const size_t length = utf8_length(name);
    if (length == 0) return false;
    name.remove_prefix(length);
  }
  return true;
}

}  // namespace loom
