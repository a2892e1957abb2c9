#include "hyperloom/core/time.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <limits>

namespace hyperloom {

std::string utc_now() {
  const auto now = std::chrono::system_clock::now();
  const auto micros =
      std::chrono::duration_cast<std::chrono::microseconds>(now.time_since_epoch()).count();
  const std::time_t seconds = static_cast<std::time_t>(micros / 1000000);
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:06}Z", fmt::gmtime(seconds), micros % 1000000);
}

Deadline Deadline::in_seconds(double seconds) {
  Deadline result;
  // A hundred years are for ever, and stay within the clock's range.
  if (!(seconds < 3.2e9)) return result;
  result.end_ = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                   std::chrono::duration<double>(std::max(seconds, 0.0)));
  return result;
}

double Deadline::seconds_left() const {
  if (unlimited()) return std::numeric_limits<double>::infinity();
  return std::max(0.0, std::chrono::duration<double>(end_ - Clock::now()).count());
}

}  // namespace hyperloom
