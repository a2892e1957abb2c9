#include "loom/base/suggest.h"

#include <algorithm>
#include <array>

namespace loom {
namespace {

constexpr size_t kLongest = 64;  // longer words are not compared

// Distance of two words of at most kLongest characters.
size_t distance(std::string_view a, std::string_view b) {
  std::array<std::array<size_t, kLongest + 1>, 3> rows;  // two rows back, one row back, this one
  for (size_t j = 0; j <= b.size(); ++j) rows[0][j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    const auto& before = rows[(i + 1) % 3];  // row i - 2
    const auto& last = rows[(i - 1) % 3];
    auto& now = rows[i % 3];
    now[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      now[j] = std::min({replaced, last[j] + 1, now[j - 1] + 1});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        now[j] = std::min(now[j], before[j - 2] + 1);
      }
    }
  }
  return rows[a.size() % 3][b.size()];
}

}  // namespace

Suggestion::Suggestion(std::string_view word)
    : word_(word), limit_(word.size() > kLongest ? 0 : std::max<size_t>(word.size() / 3, 1) + 1) {}

void Suggestion::consider(std::string_view candidate) {
  if (candidate.size() > kLongest) return;
  const size_t longer = std::max(candidate.size(), word_.size());
  if (longer - std::min(candidate.size(), word_.size()) >= limit_) return;
  const size_t found = distance(word_, candidate);
  if (found == 0 || found >= limit_ || found >= longer) return;
  limit_ = found;
  best_ = candidate;
}

std::string Suggestion::hint() const {
  return best_.empty() ? std::string() : "did you mean '" + std::string(best_) + "'?";
}

std::string suggest(std::string_view word, std::string_view candidates) {
  Suggestion suggestion(word);
  while (!candidates.empty()) {
    const size_t end = std::min(candidates.find(' '), candidates.size());
    suggestion.consider(candidates.substr(0, end));
    candidates.remove_prefix(std::min(end + 1, candidates.size()));
  }
  return suggestion.hint();
}

}  // namespace loom
