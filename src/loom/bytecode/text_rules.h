// What names and comments may hold so that the module can be printed and read back.
#pragma once

#include <string_view>

namespace loom {

bool is_utf8(std::string_view text);
// A name after '%' or '@'.
bool is_name(std::string_view text);
// A comment's text: one line.
bool is_comment(std::string_view text);

}  // namespace loom
