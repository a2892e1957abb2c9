#include "loom/runtime/trace.h"

#include <algorithm>
#include <new>
#include <tuple>

namespace loom {

uint64_t Trace::since_begin(Clock::time_point when) const {
  return static_cast<uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(when - begin_).count());
}

void Trace::begin() {
  events_.clear();
  threads_.assign(1, std::this_thread::get_id());
  incomplete_ = false;
  duration_ = 0;
  begin_ = Clock::now();
}

void Trace::record(DispatchEvent event, Clock::time_point start, Clock::time_point end) noexcept {
  const std::thread::id self = std::this_thread::get_id();
  const std::lock_guard lock(mutex_);
  try {
    auto at = std::ranges::find(threads_, self);
    if (at == threads_.end()) at = threads_.insert(threads_.end(), self);
    event.thread = static_cast<uint32_t>(at - threads_.begin());
    event.begin = since_begin(start);
    event.end = since_begin(end);
    events_.push_back(event);
  } catch (const std::bad_alloc&) {
    incomplete_ = true;
  }
}

void Trace::end() { duration_ = since_begin(Clock::now()); }

std::vector<DispatchEvent> Trace::events() const {
  std::vector<DispatchEvent> sorted = events_;
  std::ranges::sort(sorted, {}, [](const DispatchEvent& event) {
    return std::tuple(event.begin, event.end, event.command, event.first_workgroup);
  });
  return sorted;
}

}  // namespace loom
