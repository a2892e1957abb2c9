// Names of folds, so that a test can tell which of them never fire.
//
//   return rule<"index.add zero">(take(a));     a fold of one operation
//   note_fold<"scf.for no trip">();             a structural rewrite, where it happens
//
// Mentioning a name registers it: all_folds() lists every name of the program whether or not its
// code ever ran. The cases in tests/pass/*.loom have to make each of them fire. The marks are the
// only state, shared by all threads and never read by a pass.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <string_view>
#include <vector>

namespace loom {

class FoldMark {
 public:
  explicit FoldMark(std::string_view name) : name_(name), next_(head_) { head_ = this; }
  void set() {
    if (!fired_.load(std::memory_order_relaxed)) fired_.store(true, std::memory_order_relaxed);
  }

 private:
  friend struct FoldUse;
  friend std::vector<struct FoldUse> all_folds();
  friend void clear_folds();

  static inline constinit FoldMark* head_ = nullptr;
  std::string_view name_;
  FoldMark* next_;
  std::atomic<bool> fired_ = false;
};

struct FoldUse {
  std::string_view name;
  bool fired = false;
};
// Every fold of the program in name order, and whether it fired since the last clear_folds().
inline std::vector<FoldUse> all_folds() {
  std::vector<FoldUse> all;
  for (const FoldMark* mark = FoldMark::head_; mark != nullptr; mark = mark->next_) {
    all.push_back({mark->name_, mark->fired_.load(std::memory_order_relaxed)});
  }
  std::ranges::sort(all, {}, &FoldUse::name);
  return all;
}
inline void clear_folds() {
  for (FoldMark* mark = FoldMark::head_; mark != nullptr; mark = mark->next_) {
    mark->fired_.store(false, std::memory_order_relaxed);
  }
}

namespace detail {
template <size_t N>
struct FoldName {
  char text[N]{};
  // NOLINTNEXTLINE(google-explicit-constructor): rule<"name"> is the whole point.
  constexpr FoldName(const char (&name)[N]) { std::ranges::copy(name, text); }
  constexpr std::string_view view() const { return {text, N - 1}; }
};
template <FoldName kName>
inline FoldMark fold_mark{kName.view()};
}  // namespace detail

template <detail::FoldName kName>
void note_fold() {
  detail::fold_mark<kName>.set();
}
// Passes a result on and notes the fold when there is one.
template <detail::FoldName kName, class Result>
Result rule(Result result) {
  if (result.folded()) note_fold<kName>();
  return result;
}

}  // namespace loom
