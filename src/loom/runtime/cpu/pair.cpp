#include "loom/runtime/cpu/pair.h"

namespace loom {

void PairChoice::Times::add(uint64_t time) {
  const auto value =
      static_cast<uint32_t>(std::min<uint64_t>(time, std::numeric_limits<uint32_t>::max() - 1));
  second = std::min(second, std::max(best, value));
  best = std::min(best, value);
}

bool PairChoice::decide() {
  const bool before = shares_;
  if (alone_.known() && shared_.known()) {
    const uint64_t alone = alone_.second;
    const uint64_t shared = shared_.second;
    shares_ = before ? shared <= alone : shared * 20 <= alone * 19;
  }
  alone_ = {};
  shared_ = {};
  return shares_ != before;
}

bool PairTrials::next() {
  if (way_ == Way::Shared && missed_) {
    missed_ = false;
    if (--patience_ != 0) return false;
    left_ = 1;
  }
  if (--left_ != 0) return false;
  if (way_ == Way::Chosen) {
    way_ = Way::Alone;
    left_ = kTrial;
    candidates_ = false;
  } else if (way_ == Way::Alone && candidates_) {
    way_ = Way::Shared;
    left_ = kTrial;
    patience_ = kPatience;
    missed_ = false;
  } else {
    way_ = Way::Chosen;
    left_ = pause_;
    return true;
  }
  return false;
}

void PairTrials::decided(bool changed) {
  pause_ = changed ? kFirstPause : std::min(2 * pause_, kLongestPause);
  left_ = pause_;
}

}  // namespace loom
