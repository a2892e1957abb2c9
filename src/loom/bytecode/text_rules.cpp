#include "loom/bytecode/text_rules.h"

#include <algorithm>
#include <cstdint>

namespace loom {
namespace {

// Bytes of the sequence that starts with `lead`; 0 when none does.
unsigned sequence_length(uint8_t lead) {
  if (lead < 0x80) return 1;
  if (lead < 0xc2) return 0;
  if (lead < 0xe0) return 2;
  if (lead < 0xf0) return 3;
  return lead < 0xf5 ? 4 : 0;
}

bool is_name_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '$';
}

}  // namespace

bool is_utf8(std::string_view text) {
  for (size_t i = 0; i < text.size();) {
    const auto lead = static_cast<uint8_t>(text[i]);
    const unsigned length = sequence_length(lead);
    if (length == 0 || i + length > text.size()) return false;
    for (unsigned k = 1; k < length; ++k) {
      if ((static_cast<uint8_t>(text[i + k]) & 0xc0) != 0x80) return false;
    }
    // Over-long forms, surrogates and values past the last code point.
    const auto second = length > 2 ? static_cast<uint8_t>(text[i + 1]) : 0;
    if ((lead == 0xe0 && second < 0xa0) || (lead == 0xed && second >= 0xa0) ||
        (lead == 0xf0 && second < 0x90) || (lead == 0xf4 && second >= 0x90)) {
      return false;
    }
    i += length;
  }
  return true;
}

bool is_value_name(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, is_name_character);
}

bool is_symbol_name(std::string_view text) {
  bool after_dot = true;
  for (char c : text) {
    if (!is_name_character(c) && (c != '.' || after_dot)) return false;
    after_dot = c == '.';
  }
  return !after_dot;
}

bool is_hex(std::string_view text) {
  return text.size() % 2 == 0 &&
         text.find_first_not_of("0123456789abcdefABCDEF") == std::string_view::npos;
}

bool is_comment(std::string_view text) {
  return text.find_first_of("\r\n") == std::string_view::npos;
}

}  // namespace loom
