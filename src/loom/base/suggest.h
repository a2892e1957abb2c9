// The word that somebody probably meant.
#pragma once

#include <string>
#include <string_view>

namespace loom {

// Looks at candidates one by one and remembers the closest to `word`: the fewest inserted, left
// out, replaced or swapped characters, up to a third of the word's length. The first of several
// equally close candidates wins. Candidates must outlive the object. Not thread-safe.
class Suggestion {
 public:
  explicit Suggestion(std::string_view word);

  void consider(std::string_view candidate);
  // Empty when no candidate is close.
  std::string_view best() const { return best_; }
  // "did you mean 'x'?", or nothing.
  std::string hint() const;

 private:
  std::string_view word_;
  std::string_view best_;
  size_t limit_;  // the distance that the next candidate has to stay below
};

// The closest of words that are separated by spaces, as a hint.
std::string suggest(std::string_view word, std::string_view candidates);

}  // namespace loom
