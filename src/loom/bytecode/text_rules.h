// What names and comments may hold so that the module can be printed and read back.
#pragma once

#include <string_view>

namespace loom {

bool is_utf8(std::string_view text);
// A name after '%': letters, digits, '_' and '$'.
bool is_value_name(std::string_view text);
// A name after '@': such names joined by dots.
bool is_symbol_name(std::string_view text);
// Pairs of hexadecimal digits.
bool is_hex(std::string_view text);
// A comment's text: one line.
bool is_comment(std::string_view text);

}  // namespace loom
