#include "hyperloom/policy/words.h"

namespace hyperloom::policy {

bool has_word(std::string_view words, std::string_view word) {
  if (word.empty() || word.find(' ') != std::string_view::npos) return false;
  size_t at = 0;
  while (at <= words.size()) {
    const size_t end = std::min(words.find(' ', at), words.size());
    if (words.substr(at, end - at) == word) return true;
    at = end + 1;
  }
  return false;
}

std::string shorten(std::string_view text) {
  constexpr size_t kLength = 64;
  return text.size() <= kLength ? std::string(text) : std::string(text.substr(0, kLength)) + "...";
}

}  // namespace hyperloom::policy
