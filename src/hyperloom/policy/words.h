// Small helpers of rules: lists of words in tables, and texts that someone else wrote.
#pragma once

#include <string>
#include <string_view>

namespace hyperloom::policy {

// Whether `word` is one of `words`, which blanks separate.
bool has_word(std::string_view words, std::string_view word);
// Enough of a text to recognize it.
std::string shorten(std::string_view text);

}  // namespace hyperloom::policy
