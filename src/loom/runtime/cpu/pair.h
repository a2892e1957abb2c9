// Whether the issuing thread shares a small fork with the partner, found out by doing it both ways.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

namespace loom {

// Of one fork. Each way counts with the second best of its times: the best one may be luck, and the
// others hold what else the machine did.
class PairChoice {
 public:
  // What the last trial chose.
  bool shares() const { return shares_; }
  // Of the workgroups of a dispatch, how many are in the half of the thread that issues.
  uint64_t front() const { return front_; }
  void set_front(uint64_t workgroups) { front_ = workgroups; }
  // Whether a trial has no time yet of sharing.
  bool tries_shared_first() const { return !shared_.begun(); }
  // One time of a trial, in nanoseconds.
  void measured(bool shared, uint64_t time) { (shared ? shared_ : alone_).add(time); }
  // Chooses, if the trial measured both ways, and forgets its times. Whether the choice is another
  // one. Sharing takes another core, so it must win by a margin to begin, and to end only lose.
  bool decide();

 private:
  struct Times {
    uint32_t best = std::numeric_limits<uint32_t>::max();
    uint32_t second = best;
    void add(uint64_t time);
    bool begun() const { return best != std::numeric_limits<uint32_t>::max(); }
    bool known() const { return second != std::numeric_limits<uint32_t>::max(); }
  };

  Times alone_;
  Times shared_;
  uint64_t front_ = 1;
  bool shares_ = false;
};

// Of one invocation: which issues are a trial. All forks try the same way in the same issue, since
// what one thread of two left in its cache is where the other forks find it.
class PairTrials {
 public:
  enum class Way : uint8_t { Chosen, Alone, Shared };
  // Issues of a trial each way, and between trials: the fewest, and the most once trials keep
  // saying the same.
  static constexpr uint32_t kTrial = 7;
  static constexpr uint32_t kFirstPause = 1000;
  static constexpr uint32_t kLongestPause = 16'000;
  // A trial ends without a choice when the partner did not come in so many issues.
  static constexpr uint32_t kPatience = 10'000;

  Way way() const { return way_; }
  // Before an issue; true when a trial has just ended, and each fork must decide.
  bool next();
  // In an issue: a fork was measured alone, or could not be shared because the partner was not
  // there.
  void saw_candidate() { candidates_ = true; }
  void missed_partner() { missed_ = true; }
  // Forks have decided.
  void decided(bool changed);

 private:
  Way way_ = Way::Chosen;
  bool candidates_ = false;
  bool missed_ = false;
  uint32_t left_ = 2;  // issues, the coming one included
  uint32_t patience_ = 0;
  uint32_t pause_ = kFirstPause;
};

}  // namespace loom
